"""Statistics of raw logit rows in numpy: what the fake engine records, and the yardstick for the torch form.

Plain and slow on purpose; knows no model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.trace.digest import row_sums
from driftpin.trace.head import TOP_K


def head_arrays(logits: NDArray[np.float32], output_ids: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """The per-position columns of a head for raw logits [N, V] and emitted ids [N], but for `greedy`."""
    count, vocab = logits.shape
    k = min(TOP_K, vocab)
    with np.errstate(invalid="ignore"):
        wide = logits.astype(np.float64)
        total = _logsumexp(wide)
        ids = _ordered(wide)[:, :k]
        kept = np.take_along_axis(logits, ids, axis=1)
        ties = (logits == kept[:, -1:]).sum(axis=1) - (kept == kept[:, -1:]).sum(axis=1) if k else np.zeros(count)
        logprob = wide[np.arange(count), output_ids] - total
        return {
            "logprob": logprob.astype(np.float32),
            "margin": (kept[:, 0] - kept[:, 1] if k > 1 else np.zeros(count)).astype(np.float32),
            "entropy": _entropy(wide, total).astype(np.float32),
            "logsumexp": total.astype(np.float32),
            "topk_ids": ids.astype(np.int32),
            "topk_logits": kept.astype(np.float32),
            "boundary_ties": ties.astype(np.int32),
            "digest": row_sums(logits),
            "nonfinite": (~np.isfinite(logits)).sum(axis=1).astype(np.int32),
        }


def _ordered(wide: NDArray[np.float64]) -> NDArray[np.int64]:
    """Ids by (logit descending, id ascending); NaN last."""
    return np.argsort(np.where(np.isnan(wide), np.inf, -wide), axis=1, kind="stable")


def _logsumexp(wide: NDArray[np.float64]) -> NDArray[np.float64]:
    top = wide.max(axis=1, initial=-np.inf)
    return np.asarray(top + np.log(np.exp(wide - top[:, None]).sum(axis=1)))


def _entropy(wide: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    logp = wide - total[:, None]
    p = np.exp(logp)
    return np.asarray(-(np.where(p > 0, p * logp, 0.0)).sum(axis=1) + np.where(np.isnan(p).any(axis=1), np.nan, 0.0))
