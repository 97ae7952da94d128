"""The binomial tail: values by hand, and scipy's for the rest."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from driftpin.verdict.binomial import at_least


@pytest.mark.parametrize(
    ("farther", "asked", "p"), [(12, 12, 1 / 4096), (11, 12, 13 / 4096), (7, 12, 1586 / 4096), (0, 3, 1.0), (1, 1, 0.5)]
)
def test_the_sign_test_is_the_tail_of_one_half(farther: int, asked: int, p: float) -> None:
    assert at_least(farther, asked) == pytest.approx(p)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.06, 0.5, 0.97, 1.0])
@pytest.mark.parametrize(
    ("count", "trials"), [(0, 0), (0, 5), (1, 1), (2, 3), (4, 17), (17, 17), (90, 1000), (200, 4000), (3900, 4000)]
)
def test_any_share_gives_the_tail_that_scipy_gives(count: int, trials: int, share: float) -> None:
    assert at_least(count, trials, share) == pytest.approx(binom.sf(count - 1, trials, share), rel=1e-6, abs=1e-12)
