"""Digest v1 against the formula in plain Python integers; Merkle root, quantised logarithms and the sketch."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftpin.trace import digest
from driftpin.trace.layers import LOG_NONFINITE, LOG_STEPS, LOG_ZERO, dequantise, quantise
from driftpin.trace.sketch import SKETCH_K, positions, signs

MASK = 2**64 - 1
WORDS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40)
HALVES = st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=40)


def splitmix64(index: int) -> int:
    z = (index + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def plain_sum(bits: list[int]) -> int:
    canonical = [0x7FC00000 if word & 0x7FFFFFFF > 0x7F800000 else word for word in bits]
    return sum((splitmix64(i) | 1) * (word + 1) for i, word in enumerate(canonical)) & MASK


def from_bits(words: list[int]) -> NDArray[np.float32]:
    return np.array(words, np.uint32).view(np.float32)


def test_splitmix64_gives_the_published_outputs_for_seed_zero() -> None:
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert digest.splitmix64(np.arange(3)).tolist() == published
    assert [splitmix64(i) for i in range(3)] == published


@given(WORDS)
def test_any_float32_bits_have_the_sum_of_the_formula(words: list[int]) -> None:
    with np.errstate(invalid="ignore"):
        assert int(digest.row_sums(from_bits(words))) == plain_sum(words)


@given(HALVES)
def test_float16_is_widened_exactly(words: list[int]) -> None:
    row = np.array(words, np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):
        wide = [struct.unpack("<I", struct.pack("<f", float(x)))[0] for x in row]
        assert int(digest.row_sums(row)) == plain_sum(wide)


def test_every_nan_counts_as_the_same_one_and_minus_zero_as_itself() -> None:
    payloads = [0x7FC00000, 0x7F800001, 0xFFC00000, 0xFFFFFFFF, 0x7FC12345]
    assert len({int(digest.row_sums(from_bits([1, word]))) for word in payloads}) == 1
    assert digest.row_sums(np.float32([0.0])) != digest.row_sums(np.float32([-0.0]))


@given(WORDS, st.data())
def test_any_single_changed_bit_changes_the_sum(words: list[int], data: st.DataObject) -> None:
    finite = [word & 0x7F7FFFFF for word in words]
    at = data.draw(st.integers(0, len(words) - 1))
    changed = list(finite)
    changed[at] ^= 1 << data.draw(st.sampled_from([*range(23), 31]))
    assert digest.row_sums(from_bits(finite)) != digest.row_sums(from_bits(changed))


def test_rows_are_summed_one_by_one_and_order_counts() -> None:
    rows = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    sums = digest.row_sums(rows)
    assert sums.shape == (2, 3)
    assert sums[1, 2] == digest.row_sums(rows[1, 2])
    assert digest.row_sums(np.float32([1, 2])) != digest.row_sums(np.float32([2, 1]))
    assert int(digest.row_sums(np.float32([]))) == 0


def test_a_leaf_is_the_hash_of_scheme_type_length_and_sum() -> None:
    expected = hashlib.sha256(b"v1|bfloat16|576|" + (2**64 - 2).to_bytes(8, "little")).digest()
    assert digest.leaf("bfloat16", 576, 2**64 - 2) == expected


def pairwise(leaves: list[bytes]) -> bytes:
    """The root by recursion over the largest power of two, which carries odd nodes up in the same way."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(pairwise(leaves[:half]) + pairwise(leaves[half:])).digest()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 9, 30, 31, 33])
def test_the_root_of_any_number_of_leaves(count: int) -> None:
    leaves = [hashlib.sha256(bytes([n])).digest() for n in range(count)]
    root = digest.merkle_root(leaves)
    assert root == pairwise(leaves).hex()
    assert len({root, *(digest.merkle_root([*leaves[:n], b"x" * 32, *leaves[n + 1 :]]) for n in range(count))}) == (
        count + 1
    )


def test_no_leaves_have_the_hash_of_nothing() -> None:
    assert digest.merkle_root([]) == hashlib.sha256(b"").hexdigest()


@given(st.floats(min_value=2.0**-149, max_value=3.4028234e38))
def test_a_quantised_number_comes_back_within_half_a_step(number: float) -> None:
    back = float(dequantise(quantise(np.array([number])))[0])
    assert abs(np.log2(back / number)) <= 0.5 / LOG_STEPS + 1e-9


def test_zero_and_non_finite_numbers_have_codes_of_their_own() -> None:
    codes = quantise(np.array([0.0, np.nan, np.inf, 5e-324, 1e308]))
    assert codes.tolist()[:3] == [LOG_ZERO, LOG_NONFINITE, LOG_NONFINITE]
    assert all(LOG_ZERO < code < LOG_NONFINITE for code in codes.tolist()[3:])
    back = dequantise(codes)
    assert back[0] == 0.0
    assert np.isnan(back[1:3]).all()


def test_the_sketch_estimates_distances_and_its_signs_are_fair() -> None:
    chance = np.random.default_rng(7)
    x, y = chance.standard_normal((2, 400, 96))
    matrix = signs(96).astype(np.float64)
    assert set(np.unique(matrix)) == {-1.0, 1.0}
    estimates = (((x - y) @ matrix.T) ** 2).mean(axis=1) / ((x - y) ** 2).sum(axis=1)
    assert estimates.mean() == pytest.approx(1.0, abs=0.1)
    assert estimates.std() == pytest.approx((2 / SKETCH_K) ** 0.5, abs=0.1)
    assert np.abs(matrix @ matrix.T - 96 * np.eye(SKETCH_K)).max() < 48  # no two rows alike


@given(st.integers(0, 300), st.integers(2, 20))
def test_sketched_positions_are_spread_and_end_with_the_last(length: int, count: int) -> None:
    at = positions(length, count)
    assert len(at) == min(length, count)
    assert (np.diff(at) > 0).all()
    assert length == 0 or (at[0] == 0 and at[-1] == length - 1)
