"""The upper tail of a binomial distribution: how likely so many hits or more are by chance alone. Pure."""

from __future__ import annotations

import math

NEGLIGIBLE = 1e-15  # of a tail's terms


def at_least(count: int, trials: int, share: float = 0.5) -> float:
    """P(X >= count) for X binomial(trials, share); one half makes it the one-sided sign test (Dixon and Mood 1946)."""
    if not 0 < share < 1:
        return float(count <= trials * share)
    total = 0.0
    for hits in range(max(count, 0), trials + 1):
        term = math.exp(_log_choose(trials, hits) + hits * math.log(share) + (trials - hits) * math.log1p(-share))
        total += term
        if term < NEGLIGIBLE and hits > share * trials:  # terms beyond the mean fall ever faster
            break
    return min(total, 1.0)


def _log_choose(trials: int, hits: int) -> float:
    return math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
