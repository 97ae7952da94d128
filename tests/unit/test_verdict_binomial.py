"""The binomial tail: values by hand, and exact fractions for the rest."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from driftpin.verdict.binomial import at_least


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
