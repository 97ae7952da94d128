"""A logarithmic axis with a place for zero."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftpin.report.scale import DECADES, ZERO_BAND, Scale

NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


def test_decades_enclose_the_values() -> None:
    assert Scale.of([0.002, 0.5, 0.0]) == Scale(low=-3, high=0)
    assert Scale.of([0.001, 10.0]) == Scale(low=-3, high=1)


def test_a_single_power_of_ten_still_has_a_decade() -> None:
    assert Scale.of([1.0]) == Scale(low=-1, high=0)


@pytest.mark.parametrize("values", [[], [0.0], [None], [math.nan, math.inf], [-1.0]])
def test_without_a_positive_number_there_is_still_an_axis(values: list[float | None]) -> None:
    assert Scale.of(values) == Scale(low=-1, high=0)


def test_places() -> None:
    scale = Scale(low=-2, high=0)
    assert scale.at(1.0) == 1.0
    assert scale.at(0.01) == pytest.approx(ZERO_BAND)
    assert scale.at(0.1) == pytest.approx((1 + ZERO_BAND) / 2)
    assert scale.at(0.0) == 0.0
    assert scale.at(-3.0) == 0.0
    assert [scale.at(v) for v in (None, math.nan, math.inf)] == [None, None, None]


def test_what_is_far_below_the_largest_sits_at_the_foot_and_not_at_zero() -> None:
    scale = Scale.of([1.0, 1e-30])
    assert scale.high - scale.low == DECADES
    assert scale.at(1e-30) == pytest.approx(ZERO_BAND)


@given(st.lists(NUMBERS, max_size=20))
def test_every_finite_value_has_a_place_on_the_axis(values: list[float | None]) -> None:
    scale = Scale.of(values)
    places = [scale.at(v) for v in values]
    assert all((p is None) == (v is None or not math.isfinite(v)) for p, v in zip(places, values, strict=True))
    assert all(0.0 <= p <= 1.0 for p in places if p is not None)


@given(st.lists(NUMBERS, max_size=20))
def test_ticks_are_few_and_stand_where_their_numbers_do(values: list[float | None]) -> None:
    scale = Scale.of(values)
    assert 2 <= len(scale.ticks) <= 6
    assert all(scale.at(float(tick.label)) == pytest.approx(tick.at, abs=1e-6) for tick in scale.ticks)
