"""Upper tails: how likely so many hits or more are by chance alone. Pure."""

from __future__ import annotations

import math

NEGLIGIBLE = 1e-15  # of a tail's terms


def at_least(count: int, trials: int, share: float = 0.5) -> float:
    """P(X >= count) for X binomial(trials, share); one half makes it the one-sided sign test (Dixon and Mood 1946)."""
    if count <= 0:
        return 1.0
    if not 0 < share < 1:
        return float(count <= trials * share)
    total = 0.0
    for hits in range(count, trials + 1):
        term = math.exp(_log_choose(trials, hits) + hits * math.log(share) + (trials - hits) * math.log1p(-share))
        total += term
        if term < NEGLIGIBLE and hits > share * trials:  # terms beyond the mean fall ever faster
            break
    return min(total, 1.0)


def foreseen(count: int, trials: int, hits: float, seen: float) -> float:
    """P(X >= count) of `trials`, where `hits` of `seen` earlier trials hit and nothing else is known of the chance.

    Beta-binomial, the posterior predictive of a binomial under a uniform prior (Gelman et al., Bayesian Data Analysis,
    section 2.4): unlike a binomial with the share as measured it does not take a few trials for certainty.
    """
    if count <= 0:
        return 1.0
    a, b = hits + 1.0, seen - hits + 1.0
    terms = (_log_choose(trials, k) + _log_beta(k + a, trials - k + b) for k in range(count, trials + 1))
    return min(math.fsum(math.exp(term - _log_beta(a, b)) for term in terms), 1.0)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_choose(trials: int, hits: int) -> float:
    return math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
