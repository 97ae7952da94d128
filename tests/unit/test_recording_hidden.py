"""Statistics of hidden states against numpy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from driftpin.trace import sketch
from driftpin.trace.digest import row_sums
from driftpin.trace.layers import LOG_NONFINITE, quantise
from runner.recording import digest, hidden


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_statistics_against_numpy(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "CHUNK_BYTES", 8 * 96 * 2)
    rows = torch.randn(5, 96, generator=torch.Generator().manual_seed(1)).to(dtype)
    wide, got = rows.float().numpy(), hidden.measure(rows)
    assert got.sums.tolist() == row_sums(wide).tolist()
    np.testing.assert_allclose(got.rms, np.sqrt((wide.astype(np.float64) ** 2).mean(-1)), rtol=1e-12)
    assert got.absmax.tolist() == np.abs(wide).max(-1).tolist()
    assert got.nonfinite.tolist() == [0] * 5


def test_large_numbers_do_not_overflow() -> None:
    got = hidden.measure(torch.full((1, 4), 3e38).bfloat16())
    assert math.isfinite(got.rms[0])
    assert got.rms[0] == pytest.approx(3e38, rel=0.01)


def test_nonfinite_rows_are_counted_and_coded() -> None:
    rows = torch.tensor([[1.0, math.nan], [math.inf, -math.inf], [0.0, 0.0]])
    got = hidden.measure(rows)
    assert got.nonfinite.tolist() == [1, 2, 0]
    assert quantise(got.rms).tolist() == [LOG_NONFINITE, LOG_NONFINITE, 0]
    assert quantise(got.absmax).tolist() == [LOG_NONFINITE, LOG_NONFINITE, 0]


def test_the_sketch_is_the_signed_sums() -> None:
    rows = torch.randn(3, 40, generator=torch.Generator().manual_seed(2))
    expected = rows.double().numpy() @ sketch.signs(40).T.astype(np.float64)
    np.testing.assert_allclose(hidden.sketched(rows), expected, rtol=1e-6)
    cut = hidden.sketched(rows.bfloat16())
    assert (cut.view(np.uint32) & 0xFF == 0).all()


def test_more_positions_of_narrow_states_are_sketched() -> None:
    assert hidden.sketch_count(torch.bfloat16) == sketch.POSITIONS_16BIT
    assert hidden.sketch_count(torch.float32) == sketch.POSITIONS_32BIT
