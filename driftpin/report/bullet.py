"""A number against what it may reach, on one line: the value, the yardstick, the limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from driftpin.report.figure import Label
from driftpin.report.scale import Scale
from driftpin.report.visible import short


@dataclass(frozen=True, kw_only=True)
class Level:
    """One number; `css` says which: value, yardstick or limit."""

    css: str
    words: str
    value: float
    x: float  # percent of the width

    @property
    def shown(self) -> str:
        """The number itself."""
        return short(self.value)


@dataclass(frozen=True, kw_only=True)
class Bullet:
    """Levels on a logarithmic line with zero at its foot."""

    label: str
    levels: tuple[Level, ...]
    ticks: tuple[Label, ...]
    within: float | None  # percent up to which the limit reaches; None where there is no limit


def bullet(label: str, levels: Sequence[tuple[str, str, Any]]) -> Bullet | None:
    """From (css, words, number of a JSON body); numbers that are absent or not finite are left out."""
    known = [(css, words, float(v)) for css, words, v in levels if isinstance(v, int | float) and math.isfinite(v)]
    if not any(css == "value" for css, _, _ in known):
        return None
    scale = Scale.of([value for _, _, value in known])
    placed = tuple(Level(css=css, words=words, value=v, x=_x(scale.at(v) or 0.0)) for css, words, v in known)
    return Bullet(
        label=label,
        levels=placed,
        ticks=tuple(Label(place=_x(t.at), text=t.label, anchor="middle") for t in scale.ticks),
        within=next((level.x for level in placed if level.css == "limit"), None),
    )


def _x(share: float) -> float:
    return round(3.0 + 94.0 * share, 2)
