"""Digest v1 in torch against plain Python integers, and against the numpy form."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driftpin.trace import digest as reference
from runner.recording import digest

MASK = 2**64 - 1


def splitmix64(index: int) -> int:
    z = (index + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def plain(numbers: list[float]) -> int:
    """The formula in Python integers."""
    total = 0
    for i, number in enumerate(numbers):
        bits = 0x7FC00000 if math.isnan(number) else struct.unpack("<I", struct.pack("<f", number))[0]
        total += (splitmix64(i) | 1) * (bits + 1)
    return total & MASK


def sums(rows: torch.Tensor) -> list[int]:
    return [int(n) for n in digest.to_u64(digest.row_sums(rows)).reshape(-1)]


ODD = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 65504.0, 6e-8, -3.25, 1e-40]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_every_dtype_is_the_sum_of_its_widened_values(dtype: torch.dtype) -> None:
    rows = torch.tensor([ODD, ODD[::-1]]).to(dtype)
    assert sums(rows) == [plain(row) for row in rows.float().tolist()]


def test_every_nan_counts_as_the_same_nan() -> None:
    bits = torch.tensor([0x7FC00000, 0x7F800001, -1, -0x3FFFFF], dtype=torch.int32)
    assert len({*sums(bits.view(torch.float32)[:, None])}) == 1
    halves = torch.tensor([0x7FC0, 0x7F81, -1], dtype=torch.int16).view(torch.bfloat16)
    assert {*sums(halves[:, None])} == {plain([math.nan])}


def test_minus_zero_differs_from_zero() -> None:
    assert sums(torch.tensor([[0.0]])) != sums(torch.tensor([[-0.0]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_strides_do_not_matter(dtype: torch.dtype) -> None:
    grid = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5).to(dtype)
    for view in (grid.transpose(0, 2), grid[:, ::2, 1:], grid[..., 3].T, grid.flip(-1), grid[:1].expand(4, 4, 5)):
        assert sums(view) == [plain(row) for row in view.reshape(-1, view.shape[-1]).float().tolist()]


def test_shape_is_kept_and_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.linspace(-3, 3, 2 * 7 * 11).reshape(2, 7, 11)
    whole = digest.row_sums(rows)
    assert whole.shape == (2, 7)
    monkeypatch.setattr(digest, "CHUNK_BYTES", 8 * 11 * 3)
    assert digest.chunk_rows(11) == 3
    assert torch.equal(digest.row_sums(rows), whole)


def test_no_rows() -> None:
    assert digest.row_sums(torch.zeros(0, 5)).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_what_would_need_rounding_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match="digest v1"):
        digest.row_sums(torch.zeros(1, 2, dtype=dtype))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40))
def test_any_bit_pattern_agrees_with_the_numpy_form(patterns: list[int]) -> None:
    row = np.array(patterns, dtype=np.uint32).view(np.float32)
    assert sums(torch.from_numpy(row)) == [int(reference.row_sums(row))]


def test_combined_is_the_formula_over_sums() -> None:
    numbers = np.array([[3, 2**64 - 1, 17]], dtype=np.uint64)
    expected = sum((splitmix64(i) | 1) * (int(n) + 1) for i, n in enumerate(numbers[0])) & MASK
    assert digest.combined(numbers).tolist() == [expected]
    assert digest.combined(numbers[:, ::-1]).tolist() != [expected]
