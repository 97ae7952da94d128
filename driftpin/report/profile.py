"""How far each block's hidden states moved, against its rounding yardstick. Numbers only; the verdict names blocks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import takewhile

from driftpin.comparison.facts import TraceComparison
from driftpin.report import figure
from driftpin.report.figure import Figure, Panel, Place, Rule, Span, Table
from driftpin.report.scale import Scale
from driftpin.report.visible import short
from driftpin.verdict.floors import STANDS_OUT, Floors

TALL = 170  # pixels


def layer_profile(
    changed: Sequence[TraceComparison], floors: Floors | None, named: str | None, name: str = "blocks"
) -> Figure | None:
    """Median, lowest and highest relative deviation per block over changed scores; None where none was sketched."""
    sizes = _by_block([trace for trace in changed if trace.deviation])
    if not sizes:
        return None
    blocks = list(sizes)
    medians = {block: statistics.median(found) for block, found in sizes.items()}
    yardstick = dict(floors.blocks) if floors else {}
    index = blocks.index(named) if named in sizes else None
    return Figure(
        id=name,
        label="Relative deviation of the hidden states, block by block, against the rounding yardstick",
        panels=(_panel(sizes, medians, yardstick, named),),
        axis=figure.axis(_short_names(blocks), 10),
        axis_title=f"block: {_common(blocks)}.N" if _common(blocks) else "block",
        table=_table(sizes, medians, yardstick),
        legend=_legend(bool(yardstick), len(next(iter(sizes.values())))),
        mark=None if index is None else figure.across(index, len(blocks)),
        mark_text="" if index is None else f"the verdict names {named}",
    )


def _by_block(scored: Sequence[TraceComparison]) -> dict[str, list[float]]:
    """Deviations by block, in the order of the model; blocks that some canary lacks are left out."""
    profiles = [dict(trace.deviation) for trace in scored]
    shared = [b for b, _ in scored[0].deviation if all(b in p for p in profiles)] if scored else []
    return {block: [profile[block] for profile in profiles] for block in shared}


def _panel(
    sizes: dict[str, list[float]], medians: dict[str, float], yardstick: dict[str, float], named: str | None
) -> Panel:
    floor = [yardstick.get(block) for block in sizes]
    limit = [None if size is None else STANDS_OUT * size for size in floor]
    scale = Scale.of([*(s for found in sizes.values() for s in found), *floor, *limit])
    count = len(sizes)
    lines = (figure.line("yardstick", floor, scale, TALL), figure.line("limit", limit, scale, TALL))
    return Panel(
        title="relative deviation of the hidden state",
        height=TALL,
        ticks=figure.ticks(scale, TALL),
        dots=tuple(_dots(medians, scale, named)),
        spans=tuple(_span(i, found, scale, count) for i, found in enumerate(sizes.values())),
        lines=lines if yardstick else (),
        lost=tuple(figure.across(i, count) for i, m in enumerate(medians.values()) if not math.isfinite(m)),
        rules=(Rule(css="zero", y=TALL),),
    )


def _dots(medians: dict[str, float], scale: Scale, named: str | None) -> list[Place]:
    places = [(i, b, figure.down(scale, medians[b], TALL)) for i, b in enumerate(medians)]
    return [
        Place(x=figure.across(i, len(medians)), y=y, css="named" if block == named else "")
        for i, block, y in places
        if y is not None
    ]


def _span(index: int, found: Sequence[float], scale: Scale, count: int) -> Span:
    top, bottom = (figure.down(scale, value, TALL) for value in (max(found), min(found)))
    return Span(x=figure.across(index, count), top=top or 0.0, bottom=0.0 if bottom is None else bottom)


def _common(blocks: Sequence[str]) -> str:
    """The parts that all module paths begin with; nothing where there is only one path."""
    columns = zip(*(block.split(".") for block in blocks), strict=False)
    shared = takewhile(lambda parts: len(set(parts)) == 1, columns) if len(blocks) > 1 else ()
    return ".".join(parts[0] for parts in shared)


def _short_names(blocks: Sequence[str]) -> list[str]:
    return [block.removeprefix(_common(blocks)).lstrip(".") for block in blocks]


def _legend(measured: bool, scores: int) -> tuple[tuple[str, str], ...]:
    dots = (
        ("dot", f"median of {scores} {'score' if scores == 1 else 'scores'} that changed"),
        ("span", "lowest to highest"),
    )
    floors = (("yardstick", "rounding yardstick"), ("limit", f"{STANDS_OUT:g} × the yardstick"))
    return (*dots, *(floors if measured else ()))


def _table(sizes: dict[str, list[float]], medians: dict[str, float], yardstick: dict[str, float]) -> Table:
    rows = []
    for block, found in sizes.items():
        floor = yardstick.get(block)
        times = short(medians[block] / floor) if floor else ""
        rows.append((block, *map(short, (medians[block], min(found), max(found), floor)), times))
    return Table(
        caption="Block by block",
        columns=("block", "median", "lowest", "highest", "yardstick", "median in yardsticks"),
        rows=tuple(rows),
    )
