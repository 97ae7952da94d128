"""A logarithmic axis that can hold zero. Knows nothing of pixels: places are fractions of the axis, 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

ZERO_BAND = 0.1  # share of the axis that is kept for zero, below the smallest decade
DECADES = 8  # drawn below the largest value; what is smaller sits at the foot of them
TICKS = 4
LOWEST, HIGHEST = -307, 308  # powers of ten that a float holds in full


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A place on an axis and its number."""

    at: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    """From 10^low to 10^high, and zero."""

    low: int
    high: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Scale:
        """Whole decades around every positive finite value."""
        known = [v for v in values if v is not None and math.isfinite(v) and v > 0]
        if not known:
            return cls(low=-1, high=0)
        high = min(max(math.ceil(math.log10(max(known)) - 1e-9), LOWEST + 1), HIGHEST)
        low = max(math.floor(math.log10(min(known))), high - DECADES, LOWEST)
        return cls(low=min(low, high - 1), high=high)

    def at(self, value: float | None) -> float | None:
        """The place of a value; zero and below at 0, None for what is not finite."""
        if value is None or not math.isfinite(value):
            return None
        if value <= 0:
            return 0.0
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return ZERO_BAND + (1 - ZERO_BAND) * min(max(share, 0.0), 1.0)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Zero and up to five decades."""
        step = math.ceil((self.high - self.low) / TICKS)
        decades = range(self.high, self.low - 1, -step)
        return (Tick(at=0.0, label="0"), *(Tick(at=self._place(e), label=f"{10.0**e:g}") for e in decades))

    def _place(self, exponent: int) -> float:
        return ZERO_BAND + (1 - ZERO_BAND) * (exponent - self.low) / (self.high - self.low)
