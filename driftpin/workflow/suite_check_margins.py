"""How close a suite's tokens are to changing: margins held against the rounding yardstick F. Pure.

Three kinds of evidence, strongest first: a margin of exactly zero; a top token that did change when embeddings were
disturbed by rounding; a margin below F. In bfloat16 F is wide, and most canaries have some margin below it; in float32
it is tiny, and hardly any has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.trace.head import Head

FAR = 20.0  # times F: a smallest margin above it does not flip under anything of rounding's size
FEWEST = 8  # tokens: cutting a canary shorter than this leaves little to see
EDGES = (0.5, 1.0, 5.0, FAR)  # of the histogram, in F
SHOWN = 4  # positions named in one sentence


class Band(StrEnum):
    """How close a canary's closest position is."""

    TIE = "tie"  # two logits were equal
    FLIPS = "flips"  # the disturbance changed a top token
    NEAR = "near"  # below F, though nothing changed
    BETWEEN = "between"  # quiet under rounding, yet close enough for its tokens to show a small change
    FAR = "far"  # above 20 F everywhere


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One canary's decode and its perturbed scores on the same tokens."""

    canary: str
    head: Head
    perturbed: tuple[Head, ...]


@dataclass(frozen=True, kw_only=True)
class Close:
    """One output position at which the text could change: the top two ids, their margin in logits, what was seen."""

    position: int
    top: int
    second: int
    margin: float
    flipped: int  # disturbed runs in which another token was on top
    runs: int


@dataclass(frozen=True, kw_only=True)
class Margins:
    """A canary's margins in short."""

    canary: str
    positions: int
    smallest: float  # logits
    at: int
    ratio: float  # smallest / F
    close: tuple[Close, ...]  # margin below F, or seen to flip; in order of position
    band: Band

    @property
    def loud(self) -> tuple[Close, ...]:
        """Positions at which rounding decides: ties and flips."""
        return tuple(c for c in self.close if c.flipped or c.margin == 0)

    def to_json(self) -> dict[str, Any]:
        """As `driftpin suite check --format json` shows it; `close` is not in it, see `close_to_json`."""
        return {
            "positions": self.positions,
            "smallest_margin": self.smallest,
            "position": self.at,
            "ratio": self.ratio,
            "band": self.band.value,
        }


Names = Mapping[int, str]  # what a token id is written as; ids that are not in it are shown as numbers


def margins_of(one: Measured, floor: float) -> Margins | None:
    """A canary's margins against F, both in logits; None where no margin is finite."""
    margin = one.head.margin.astype(np.float64)
    finite = np.isfinite(margin)
    if not finite.any() or one.head.topk_ids.shape[1] < 2:
        return None
    at = int(np.argmin(np.where(finite, margin, np.inf)))
    flipped = _flips(one)
    wanted = np.flatnonzero(finite & ((margin < floor) | (flipped > 0)))
    close = tuple(_close(one, int(n), int(flipped[n])) for n in wanted)
    smallest = float(margin[at])
    return Margins(
        canary=one.canary,
        positions=len(margin),
        smallest=smallest,
        at=at,
        ratio=smallest / floor,
        close=close,
        band=_band(close, smallest / floor),
    )


def _flips(one: Measured) -> NDArray[np.int64]:
    """In how many disturbed runs another token was on top; int64 [N]."""
    top = one.head.topk_ids[:, 0]
    moved = [other.topk_ids[: len(top), 0] != top for other in one.perturbed if len(other.topk_ids) == len(top)]
    return np.sum(moved, axis=0, dtype=np.int64) if moved else np.zeros(len(top), np.int64)


def _close(one: Measured, position: int, flipped: int) -> Close:
    first, second = (int(i) for i in one.head.topk_ids[position, :2])
    margin = float(one.head.margin[position])
    return Close(
        position=position, top=first, second=second, margin=margin, flipped=flipped, runs=len(one.perturbed)
    )


def _band(close: Sequence[Close], ratio: float) -> Band:
    if any(c.margin == 0 for c in close):
        return Band.TIE
    if any(c.flipped for c in close):
        return Band.FLIPS
    if ratio < 1:
        return Band.NEAR
    return Band.FAR if ratio > FAR else Band.BETWEEN


def histogram(found: Sequence[Margins]) -> list[dict[str, Any]]:
    """Canaries by smallest margin in F: `from` (included), `to` (excluded; null for no end), `count`."""
    edges = (0.0, *EDGES, np.inf)
    ratios = [one.ratio for one in found]
    return [
        {"from": low, "to": None if high == np.inf else high, "count": sum(low <= ratio < high for ratio in ratios)}
        for low, high in zip(edges, edges[1:], strict=False)
    ]


def margin_findings(found: Sequence[Margins], floor: float, names: Names) -> Iterator[Finding]:
    """Which canaries are too close to a tie to be quiet, and which too far from one to be sensitive."""
    for one in found:
        if one.loud:
            yield _loud(one, floor, names)
    yield from _near([one for one in found if one.band is Band.NEAR], floor)
    yield from _far([one for one in found if one.band is Band.FAR], found)


def _loud(one: Margins, floor: float, names: Names) -> Finding:
    kind = FindingKind.TIE if one.band is Band.TIE else FindingKind.FLIPS
    said = "; ".join(_said(close, names) for close in one.loud[:SHOWN])
    more = f"; and {len(one.loud) - SHOWN} more" if len(one.loud) > SHOWN else ""
    first = one.loud[0].position
    if first >= FEWEST:
        remedy = f"Set max_new_tokens to {first} (quiet so far), or reword the prompt."
    else:
        remedy = "Reword the prompt until its first tokens are decided more clearly."
    return Finding(
        kind=kind,
        level=Level.WARNING,
        sentence=f"{one.canary!r} will not be quiet: {said}{more} (F = {floor:.3g}).",
        remedy=f"{remedy} Kept as it is, its flips are judged tie_flip, never drift.",
        canaries=(one.canary,),
    )


def _said(close: Close, names: Names) -> str:
    pair = f"{_name(close.top, names)} over {_name(close.second, names)}"
    by = "exactly tied" if close.margin == 0 else f"by {close.margin:.3g} logits"
    seen = f", another token in {close.flipped} of {close.runs} disturbed runs" if close.flipped else ""
    return f"output token {close.position}, {pair}, {by}{seen}"


def _name(token: int, names: Names) -> str:
    return repr(names[token]) if token in names else f"token {token}"


def _near(found: Sequence[Margins], floor: float) -> Iterator[Finding]:
    if not found:
        return
    each = ", ".join(f"{one.canary} ({len(one.close)}, first at {one.close[0].position})" for one in found)
    yield Finding(
        kind=FindingKind.NEAR,
        level=Level.NOTE,
        sentence=f"Margins below F = {floor:.3g} that no disturbed run flipped, by canary (positions, first): {each}.",
        remedy="Nothing, while the stack stays: these show small changes first. On another kernel some may flip.",
        canaries=tuple(one.canary for one in found),
    )


def _far(found: Sequence[Margins], everything: Sequence[Margins]) -> Iterator[Finding]:
    if not found:
        return
    closest = min(found, key=lambda one: one.ratio)
    if len(found) == len(everything):
        who = f"All {len(found)} canaries are"
        remedy = "Usual in float32: rounding there flips nothing, and a text changes only when logits move by as much as"
        remedy += f" {closest.smallest:.3g}. Smaller changes show as numbers (verdict numeric or shifted)."
    else:
        who = f"{len(found)} of {len(everything)} canaries are"
        remedy = "They are quiet, and their texts notice large changes only. Add open prompts (stories, lists, sums)"
        remedy += " if most of the suite is far."
    yield Finding(
        kind=FindingKind.FAR,
        level=Level.NOTE,
        sentence=f"{who} far from any tie (every margin above {FAR:g} F); the closest is {closest.canary!r}, output "
        f"token {closest.at}: {closest.smallest:.3g} logits, {closest.ratio:.3g} F.",
        remedy=remedy,
        canaries=tuple(one.canary for one in found),
    )


def close_to_json(close: Close, names: Names, *, text: bool) -> dict[str, Any]:
    """One close position; what could be read off the output is left out where the suite hides its text."""
    seen = {"position": close.position, "margin": close.margin, "flipped": close.flipped, "runs": close.runs}
    if not text:
        return seen
    written = {"top_text": names.get(close.top), "second_text": names.get(close.second)}
    return {**seen, "top": close.top, "second": close.second, **written}
