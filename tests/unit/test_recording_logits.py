"""Statistics of logit rows against a slow recomputation in Python and float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from driftpin.trace.digest import row_sums
from runner.recording import digest, logits
from runner.recording.rows import head_arrays


def order(row: list[float]) -> list[int]:
    """Ids by (logit descending, id ascending), NaN last."""
    return sorted(range(len(row)), key=lambda i: (-row[i] if not math.isnan(row[i]) else math.inf, i))


def normal(rows: int, vocab: int, dtype: torch.dtype) -> torch.Tensor:
    return (torch.randn(rows, vocab, generator=torch.Generator().manual_seed(7)) * 3).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_column_against_a_full_sort(dtype: torch.dtype) -> None:
    rows = normal(9, 700, dtype)  # in 16 bits ties are everywhere
    ids = torch.arange(9) * 70
    got = logits.measure(rows, ids)
    for n, row in enumerate(rows.float().tolist()):
        ordered = order(row)
        assert got.topk_ids[n].tolist() == ordered[:20]
        assert got.topk_logits[n].tolist() == [row[i] for i in ordered[:20]]
        assert got.boundary_ties[n] == sum(row[i] == row[ordered[19]] for i in ordered[20:])
        assert got.margin[n] == np.float32(row[ordered[0]]) - np.float32(row[ordered[1]])
        lse = math.log(sum(math.exp(x) for x in row))
        assert got.logsumexp[n] == pytest.approx(lse, abs=2e-6)
        assert got.logprob[n] == pytest.approx(row[ids[n]] - lse, abs=2e-6)
        assert got.entropy[n] == pytest.approx(-sum(math.exp(x - lse) * (x - lse) for x in row), rel=4e-5)
    assert got.digest.tolist() == row_sums(rows.float().numpy()).tolist()
    assert not got.nonfinite.any()


def test_ties_at_the_boundary_go_to_the_smallest_ids_and_are_counted() -> None:
    row = torch.zeros(1, 50)
    row[0, 40] = 5.0
    got = logits.measure(row, torch.tensor([40]))
    assert got.topk_ids[0].tolist() == [40, *range(19)]
    assert got.boundary_ties.tolist() == [49 - 19]


def test_minus_zero_ties_with_zero() -> None:
    row = torch.full((1, 30), -1.0)
    row[0, 3], row[0, 5] = -0.0, 0.0
    got = logits.measure(row, torch.tensor([3]))
    assert got.topk_ids[0, :2].tolist() == [3, 5]
    assert got.margin.tolist() == [0.0]


def test_nan_sorts_last_and_is_counted() -> None:
    row = torch.arange(30.0)[None].clone()
    row[0, 29], row[0, 0] = math.nan, -math.inf
    got = logits.measure(row, torch.tensor([29]))
    assert got.topk_ids[0].tolist() == list(range(28, 8, -1))
    assert got.nonfinite.tolist() == [2]
    assert np.isnan([got.logprob[0], got.logsumexp[0], got.entropy[0]]).all()


def test_all_nan_gives_a_row_without_an_error() -> None:
    got = logits.measure(torch.full((2, 30), math.nan), torch.tensor([0, 0]))
    assert got.nonfinite.tolist() == [30, 30]
    assert got.topk_ids.tolist() == [list(range(20))] * 2
    assert np.isnan(got.topk_logits).all()


def test_masked_entries_do_not_spoil_the_entropy() -> None:
    row = torch.full((1, 30), -math.inf)
    row[0, :2] = 1.0
    got = logits.measure(row, torch.tensor([1]))
    assert got.entropy[0] == pytest.approx(math.log(2), rel=4e-5)
    assert got.logprob[0] == pytest.approx(-math.log(2), abs=1e-6)


@pytest.mark.parametrize("vocab", [1, 2, 5])
def test_a_small_vocabulary_has_fewer_alternatives(vocab: int) -> None:
    got = logits.measure(torch.arange(float(vocab))[None], torch.tensor([0]))
    assert got.topk_ids.tolist() == [list(range(vocab))[::-1]]
    assert got.margin.tolist() == [math.inf if vocab == 1 else 1.0]


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, ids = normal(7, 64, torch.bfloat16), torch.arange(7)
    whole = logits.measure(rows, ids)
    monkeypatch.setattr(digest, "CHUNK_BYTES", 8 * 64 * 2)
    parts = logits.measure(rows, ids)
    for name in ("logprob", "entropy", "topk_ids", "digest", "nonfinite"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name))


def test_torch_and_numpy_forms_agree() -> None:
    """The fake engine records with the numpy form; a comparison must not see which of the two wrote a trace."""
    rows, ids = normal(6, 300, torch.bfloat16).float(), torch.arange(6)
    plain = head_arrays(rows.numpy(), ids.numpy().astype(np.int32))
    for name, column in vars(logits.measure(rows, ids)).items():
        assert column.dtype == plain[name].dtype
        rtol = 4e-5 if name == "entropy" else 2e-6
        np.testing.assert_allclose(column, plain[name], rtol=rtol, atol=2e-6 if column.dtype == np.float32 else 0)
