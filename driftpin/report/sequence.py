"""The chart along one output: |Δ log-prob| where both sides saw the same context, and both margins throughout."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from driftpin.report import figure
from driftpin.report.figure import Figure, Panel, Place, Rule, Table
from driftpin.report.scale import Scale
from driftpin.report.strand import Strand
from driftpin.report.tokens import text_at
from driftpin.report.visible import short
from driftpin.trace.probe import Probe
from driftpin.verdict.floors import Floors
from driftpin.verdict.outcome import tie_limit

WINDOW = 320  # positions drawn at most, around the one that matters
TALL, LOW = 120, 96  # pixels
Numbers = Sequence[float | None]


def sequence_figure(strand: Strand, name: str, floors: Floors | None) -> Figure | None:
    """None where neither side put out a token."""
    count = max(len(strand.baseline.ids), len(strand.candidate.ids))
    if not count:
        return None
    first, last = _window(strand, count)
    delta = _cut(strand.delta, first, last)
    margins = [_cut(voice.margin, first, last) for voice in (strand.baseline, strand.candidate)]
    at = None if strand.divergence is None else strand.divergence.position - first
    width = last - first
    return Figure(
        id=name,
        label=f"{strand.key.probe.value} of {strand.key.canary}: movement of the log-probability and both margins",
        panels=(*_delta_panels(delta, strand, floors), _margin_panel(margins, strand, floors)),
        axis=figure.axis([str(i) for i in range(first, last)]),
        axis_title="output token",
        table=_table(strand, first, last),
        legend=_legend(strand, floors),
        mark=None if at is None else figure.across(at, width),
        mark_text="" if strand.divergence is None else f"tokens part at output {strand.divergence.position}",
        veil=None if at is None or at + 1 >= width else round(100.0 * (at + 1) / width, 3),
        notes=_notes(strand, count, first, last),
    )


def _window(strand: Strand, count: int) -> tuple[int, int]:
    """Around the divergence, else around the largest movement."""
    if count <= WINDOW:
        return 0, count
    delta = strand.delta
    largest = int(np.nan_to_num(delta, nan=np.inf).argmax()) if len(delta) else 0
    centre = largest if strand.divergence is None else strand.divergence.position
    first = min(max(0, centre - WINDOW * 3 // 5), count - WINDOW)
    return first, first + WINDOW


def _cut(values: NDArray[np.float64], first: int, last: int) -> list[float | None]:
    """The window's values, None behind the end of the row."""
    return [float(values[i]) if i < len(values) else None for i in range(first, last)]


def _delta_panels(delta: Numbers, strand: Strand, floors: Floors | None) -> tuple[Panel, ...]:
    """None where the very first token differs: there is nothing to subtract."""
    if not strand.shared:
        return ()
    levels = _delta_rules(strand, floors)
    scale = Scale.of([*delta, *levels.values()])
    tops = [(i, figure.down(scale, value, TALL)) for i, value in enumerate(delta)]
    panel = Panel(
        title="|Δ log-prob| of the emitted token, nats",
        height=TALL,
        ticks=figure.ticks(scale, TALL),
        stems=tuple(Place(x=figure.across(i, len(delta)), y=y) for i, y in tops if y is not None),
        lost=_lost(delta),
        rules=_rules(levels, scale, TALL),
    )
    return (panel,)


def _delta_rules(strand: Strand, floors: Floors | None) -> dict[str, float]:
    """The mean of this execution and, for a score, what that mean may reach."""
    moved, levels = strand.fact.movement, {}
    if strand.shared and moved is not None and math.isfinite(moved.mean_abs_logprob):
        levels["mean"] = moved.mean_abs_logprob
    if floors is not None and strand.key.probe is Probe.SCORE:
        levels["limit"] = floors.shift_limit(strand.key.canary)
    return levels


def _margin_panel(margins: Sequence[Numbers], strand: Strand, floors: Floors | None) -> Panel:
    levels = _margin_rules(strand, floors)
    scale = Scale.of([*margins[0], *margins[1], *levels.values()])
    pairs = zip(("baseline", "candidate"), margins, strict=True)
    return Panel(
        title="margin: top-1 minus top-2 logit",
        height=LOW,
        ticks=figure.ticks(scale, LOW),
        lines=tuple(figure.line(css, values, scale, LOW) for css, values in pairs),
        lost=tuple(sorted({*_lost(margins[0]), *_lost(margins[1])})),
        rules=_rules(levels, scale, LOW),
    )


def _margin_rules(strand: Strand, floors: Floors | None) -> dict[str, float]:
    if floors is None:
        return {}
    return {"tie": floors.pair if strand.divergence is None else tie_limit(strand.divergence, floors)}


def _rules(levels: dict[str, float], scale: Scale, height: int) -> tuple[Rule, ...]:
    places = {css: figure.down(scale, level, height) for css, level in levels.items()}
    return tuple(Rule(css=css, y=y) for css, y in places.items() if y is not None)


def _lost(values: Numbers) -> tuple[float, ...]:
    bad = [i for i, value in enumerate(values) if value is not None and not math.isfinite(value)]
    return tuple(figure.across(i, len(values)) for i in bad)


def _legend(strand: Strand, floors: Floors | None) -> tuple[tuple[str, str], ...]:
    deltas, ties = _delta_rules(strand, floors), _margin_rules(strand, floors)
    words = {
        "mean": f"mean |Δ log-prob| {short(deltas.get('mean'))}",
        "limit": f"what that mean may reach, {short(deltas.get('limit'))} (2 × its yardstick)",
        "tie": f"F, what rounding moves a pair by: {short(ties.get('tie'))}",
    }
    levels = ((css, text) for css, text in words.items() if css in deltas or css in ties)
    return (("baseline", "baseline's margin"), ("candidate", "candidate's margin"), *levels)


def _notes(strand: Strand, count: int, first: int, last: int) -> tuple[str, ...]:
    notes = []
    if last - first < count:
        notes.append(f"Drawn: output tokens {first} to {last - 1} of {count}.")
    if strand.divergence is not None:
        notes.append("Behind the divergence the two sides saw different contexts: nothing is subtracted there.")
    return tuple(notes)


def _table(strand: Strand, first: int, last: int) -> Table:
    tokens = ("token", "candidate's token") if strand.divergence else ("token",)
    numbers = ("|Δ log-prob|", "log-prob, baseline", "log-prob, candidate", "margin, baseline", "margin, candidate")
    return Table(
        caption="Position by position",
        columns=("position", *(tokens if strand.text else ()), *numbers),
        rows=tuple(_row(strand, index) for index in range(first, last)),
    )


def _row(strand: Strand, index: int) -> tuple[str, ...]:
    voices = (strand.baseline, strand.candidate)
    told = voices if strand.divergence else voices[:1]
    names = tuple(text_at(voice, index) for voice in told) if strand.text else ()
    columns = (strand.delta, *(v.logprob for v in voices), *(v.margin for v in voices))
    return (str(index), *names, *(short(float(c[index])) if index < len(c) else "" for c in columns))
