"""How close a suite's tokens are to changing: margins held against the rounding yardstick F. Pure; has no words.

Three kinds of evidence, strongest first: a margin of exactly zero; a top token that did change, when embeddings were
disturbed by rounding or when the same tokens were scored at once; a margin below F. In bfloat16 F is wide, and most
canaries have some margin below it; in float32 it is tiny, and hardly any has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.comparison.tokens import kept_pair
from driftpin.trace.head import Head

FAR = 20.0  # times F: nothing of rounding's size reaches as far
EDGES = (0.0, 0.1, 0.25, 0.5, 1.0, 5.0, FAR, 100.0, 1000.0, np.inf)  # of the histogram, in F


class Band(StrEnum):
    """How close a canary's closest position is."""

    TIE = "tie"  # two logits were equal
    FLIPS = "flips"  # the disturbance, or scoring instead of generating, changed a top token
    NEAR = "near"  # below F, though nothing changed
    BETWEEN = "between"  # quiet under rounding, yet close enough for its tokens to show a small change
    FAR = "far"  # above 20 F everywhere


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One canary's decode, and on the same tokens its score and its perturbed scores."""

    canary: str
    head: Head
    score: Head | None
    perturbed: tuple[Head, ...]


@dataclass(frozen=True, kw_only=True)
class Close:
    """One output position at which the text could change: the top two ids, their margin in logits, what was seen."""

    position: int
    top: int
    second: int
    margin: float
    flipped: int  # disturbed scores with another token on top than the undisturbed one had
    runs: int
    scored: bool  # the undisturbed score had the decode's token on top

    @property
    def loud(self) -> bool:
        """True when rounding decides here, by what was seen."""
        return self.margin == 0 or self.flipped > 0 or not self.scored


@dataclass(frozen=True, kw_only=True)
class Parting:
    """Where decode and score lie furthest apart: the movement of the decode's top two logits, in F."""

    position: int
    ratio: float

    @property
    def beyond_rounding(self) -> bool:
        """True when the two do not compute the same."""
        return self.ratio > FAR


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
    parting: Parting | None  # None where there is no score to hold the decode against

    @property
    def loud(self) -> tuple[Close, ...]:
        """Positions at which rounding decides: ties and flips."""
        return tuple(c for c in self.close if c.loud)

    def to_json(self) -> dict[str, Any]:
        """As `driftpin suite check --format json` shows it, but for the close positions."""
        return {
            "positions": self.positions,
            "smallest_margin": self.smallest,
            "position": self.at,
            "ratio": self.ratio,
            "decode_to_score": None if self.parting is None else self.parting.ratio,
            "band": self.band.value,
        }


def margins_of(one: Measured, floor: float) -> Margins | None:
    """A canary's margins against F, both in logits; None where no margin is finite."""
    margin = one.head.margin.astype(np.float64)
    finite = np.isfinite(margin)
    if not finite.any() or one.head.topk_ids.shape[1] < 2:
        return None
    parting = _parting(one, floor)
    flipped, scored = _flipped(one), _scored(one, parting)
    wanted = np.flatnonzero(finite & ((margin < floor) | (flipped > 0) | ~scored))
    close = tuple(_close(one, int(n), int(flipped[n]), bool(scored[n])) for n in wanted)
    at = int(np.argmin(np.where(finite, margin, np.inf)))
    ratio = float(margin[at]) / floor
    return Margins(
        canary=one.canary,
        positions=len(margin),
        smallest=float(margin[at]),
        at=at,
        ratio=ratio,
        close=close,
        band=_band(close, ratio),
        parting=parting,
    )


def _flipped(one: Measured) -> NDArray[np.int64]:
    """In how many disturbed scores another token was on top than in the undisturbed one; int64 [N]."""
    if one.score is None or not one.perturbed:
        return np.zeros(len(one.head.topk_ids), np.int64)
    top = one.score.topk_ids[:, 0]
    count: NDArray[np.int64] = np.stack([other.topk_ids[:, 0] != top for other in one.perturbed]).sum(axis=0)
    return count


def _scored(one: Measured, parting: Parting | None) -> NDArray[np.bool_]:
    """Where the score had the decode's token on top; everywhere when more than rounding parts the two."""
    if one.score is None or (parting is not None and parting.beyond_rounding):
        return np.ones(len(one.head.topk_ids), np.bool_)
    same: NDArray[np.bool_] = one.head.topk_ids[:, 0] == one.score.topk_ids[:, 0]
    return same


def _parting(one: Measured, floor: float) -> Parting | None:
    if one.score is None:
        return None
    moved = [_moved(one.head, one.score, n) for n in range(len(one.head.topk_ids))]
    at = int(np.argmax(moved))
    return Parting(position=at, ratio=moved[at] / floor)


def _moved(head: Head, score: Head, position: int) -> float:
    """How far the top two logits of one position moved apart; 0 where the score kept neither or they are infinite."""
    first, second = (int(i) for i in head.topk_ids[position, :2])
    pairs = [kept_pair(side, position, first, second) for side in (head, score)]
    if pairs[0] is None or pairs[1] is None:
        return 0.0
    size = abs((pairs[0][0] - pairs[0][1]) - (pairs[1][0] - pairs[1][1]))
    return size if np.isfinite(size) else 0.0


def _close(one: Measured, position: int, flipped: int, scored: bool) -> Close:
    first, second = (int(i) for i in one.head.topk_ids[position, :2])
    return Close(
        position=position,
        top=first,
        second=second,
        margin=float(one.head.margin[position]),
        flipped=flipped,
        runs=len(one.perturbed),
        scored=scored,
    )


def _band(close: Sequence[Close], ratio: float) -> Band:
    if any(c.margin == 0 for c in close):
        return Band.TIE
    if any(c.loud for c in close):
        return Band.FLIPS
    if ratio < 1:
        return Band.NEAR
    return Band.FAR if ratio > FAR else Band.BETWEEN


def histogram(found: Sequence[Margins]) -> list[dict[str, Any]]:
    """Canaries by smallest margin in F: `from` (included), `to` (excluded; null for no end), `count`."""
    ratios = [one.ratio for one in found]
    return [
        {"from": low, "to": None if high == np.inf else high, "count": sum(low <= ratio < high for ratio in ratios)}
        for low, high in pairwise(EDGES)
    ]
