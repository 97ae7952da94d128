"""The sign test as a picture: each canary's distance to the reference over the baseline's own, one dot each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from driftpin.comparison.distance import Distance
from driftpin.report.figure import Label, Place
from driftpin.report.visible import short
from driftpin.trace.probe import Probe

BINS = 60
DOT, TALL = 8, 88  # pixels per stacked dot, of the whole strip
MOST = 400  # dots drawn
STEPS = (1.1, 1.25, 1.5, 2.0, 4.0, 10.0, 100.0, 1e4)  # the axis ends at one of them and at its inverse


@dataclass(frozen=True, kw_only=True)
class Strip:
    """Dots left and right of 1, stacked where they would cover each other."""

    dots: tuple[Place, ...]
    ticks: tuple[Label, ...]
    height: int
    left_out: int


def strip(distances: Sequence[Distance], probe: Probe) -> Strip | None:
    """Of one probe's first executions whose distance changed; None where there is none."""
    mine = [d for d in distances if d.key.probe is probe and d.key.repeat == 0 and d.baseline != d.candidate]
    ratios = sorted(d.ratio for d in mine)
    if not ratios:
        return None
    end = _end(ratios)
    drawn = ratios[:: -(-len(ratios) // MOST)]
    return Strip(
        dots=tuple(_stacked(drawn, end)),
        ticks=tuple(Label(place=round(_x(r, end), 2), text=f"{short(r)} ×") for r in (1 / end, 1.0, end)),
        height=TALL,
        left_out=len(ratios) - len(drawn),
    )


def _end(ratios: Sequence[float]) -> float:
    widest = max(max(r, 1 / r) for r in ratios if 0 < r < math.inf) if any(0 < r < math.inf for r in ratios) else 1.1
    return next((step for step in STEPS if step >= widest), STEPS[-1])


def _stacked(ratios: Sequence[float], end: float) -> list[Place]:
    seen: Counter[int] = Counter()
    dots = []
    for ratio in ratios:
        slot = round(_x(ratio, end) * BINS / 100)
        level = seen[slot] % (TALL // DOT - 1)
        seen[slot] += 1
        css = "farther" if ratio > 1 else "closer"
        dots.append(Place(x=round(slot * 100 / BINS, 2), y=TALL - DOT * (level + 1), css=css))
    return dots


def _x(ratio: float, end: float) -> float:
    """Percent of the width on a logarithmic axis whose middle is 1."""
    if ratio <= 0:
        return 6.0
    share = math.log(ratio) / math.log(end) if math.isfinite(ratio) else 1.0
    return 50.0 + 44.0 * min(max(share, -1.0), 1.0)
