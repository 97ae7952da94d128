"""Canonical JSON: the same value, the same bytes; and nothing that has no such form."""

from __future__ import annotations

import hashlib
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftpin.canonical import canonical_json, digest_of, float_from_json, hex64, json_float
from driftpin.errors import CanonicalError

LARGEST = 2**53 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# Whole floats from 2^53 on have a form, but an ordinary reader takes it for an integer beyond JSON's exact ones.
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) < 2**53 or abs(x) >= 1e21)
LEAVES = st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | FLOATS | TEXT
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


@given(VALUES)
def test_the_bytes_say_the_same_to_an_ordinary_reader(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@given(VALUES)
def test_reading_and_writing_again_changes_nothing(value: Any) -> None:
    once = canonical_json(value)
    assert canonical_json(json.loads(once)) == once


@given(st.dictionaries(TEXT, LEAVES, min_size=2), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], chance: random.Random) -> None:
    items = list(value.items())
    chance.shuffle(items)
    assert digest_of(dict(items)) == digest_of(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [1.0, 1e21, 1e-7, -0.0]}, b'{"a":[1,1e+21,1e-7,0],"b":1}'),
        ({"é": "\u20ac\n\x0f"}, '{"é":"€\\n\\u000f"}'.encode()),
        ({"\U0001f600": 1, "\ufb33": 2}, '{"\U0001f600":1,"\ufb33":2}'.encode()),  # by UTF-16 units, not code points
    ],
)
def test_the_form_is_that_of_the_standard(value: Any, expected: bytes) -> None:
    assert canonical_json(value) == expected
    assert digest_of(value) == hashlib.sha256(expected).hexdigest()


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "\ud800", {"\udfff": 1}, 2**53 + 1, -(2**64), {1: 2}, b"x", {1, 2}]
)
def test_what_has_no_form_is_refused_at_any_depth(value: Any) -> None:
    for nested in (value, [value], {"a": [value]}):
        with pytest.raises(CanonicalError, match="no canonical JSON form"):
            canonical_json(nested)


@given(st.floats(width=32) | st.floats())
def test_any_float_survives_its_json_form(number: float) -> None:
    back = float_from_json(json.loads(canonical_json(json_float(number))))
    assert back == number or (math.isnan(back) and math.isnan(number))


@given(st.integers(0, 2**64 - 1))
def test_a_64_bit_integer_survives_as_hex(number: int) -> None:
    assert len(hex64(number)) == 16
    assert int(hex64(number), 16) == number
