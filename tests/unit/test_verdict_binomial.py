"""The binomial tail: values by hand, and exact fractions for the rest."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from driftpin.verdict.binomial import at_least, foreseen


@pytest.mark.parametrize(
    ("farther", "asked", "p"), [(12, 12, 1 / 4096), (11, 12, 13 / 4096), (7, 12, 1586 / 4096), (0, 3, 1.0), (1, 1, 0.5)]
)
def test_the_sign_test_is_the_tail_of_one_half(farther: int, asked: int, p: float) -> None:
    assert at_least(farther, asked) == pytest.approx(p)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.06, 0.5, 0.97, 1.0])
@pytest.mark.parametrize(
    ("count", "trials"), [(0, 0), (0, 5), (1, 1), (2, 3), (4, 17), (17, 17), (9, 100), (90, 400), (390, 400)]
)
def test_any_share_gives_the_tail_of_exact_fractions(count: int, trials: int, share: float) -> None:
    p = Fraction(share).limit_denominator(1000)
    exact = sum(math.comb(trials, n) * p**n * (1 - p) ** (trials - n) for n in range(count, trials + 1))
    assert at_least(count, trials, share) == pytest.approx(float(exact), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("hits", "seen"), [(0, 0), (0, 48), (3, 4), (7, 48), (48, 48)])
@pytest.mark.parametrize(("count", "trials"), [(0, 12), (1, 1), (1, 12), (5, 12), (12, 12)])
def test_what_was_seen_foretells_what_will_be_with_all_its_doubt(count: int, trials: int, hits: int, seen: int) -> None:
    """The beta-binomial of whole numbers is a quotient of binomial coefficients (Polya's urn)."""
    urn = math.comb(trials + seen + 1, trials)
    ways = [math.comb(hits + k, k) * math.comb(seen - hits + trials - k, trials - k) for k in range(trials + 1)]
    assert sum(ways) == urn
    assert foreseen(count, trials, hits, seen) == pytest.approx(sum(ways[count:]) / urn)


def test_forty_eight_quiet_trials_make_one_hit_likely_and_four_unlikely() -> None:
    assert foreseen(1, 12, 0, 48) == pytest.approx(12 / 61)  # a binomial with the share as measured would say never
    assert foreseen(4, 12, 0, 48) < 0.001 < foreseen(3, 12, 0, 48)
    assert foreseen(2, 12, 0.5, 48) < foreseen(2, 12, 0.75, 48) < foreseen(2, 12, 1, 48)  # shares are no whole numbers
