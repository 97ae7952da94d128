"""What is kept of raw logit rows. Knows rows and the ids that were chosen; not who chose them, nor any model.

Everything but the digest is derived: float32, or float64 where a sum over the vocabulary asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from driftpin.trace.head import TOP_K
from runner.recording import digest

EXP_FLOOR = -200.0  # exp of it is 0 in float32; keeps 0 * -inf out of the entropy
ID_BITS = 32
SHOWN_ONLY = -256  # mask: entropy decides nothing, and 15 bits of its mantissa (3e-5) keep a float32 head in its budget


@dataclass(frozen=True, kw_only=True, eq=False)
class LogitStats:
    """Columns of a head over N positions; see `driftpin.trace.head.Head` for their meaning."""

    logprob: NDArray[np.float32]  # [N]
    margin: NDArray[np.float32]  # [N] infinite where the vocabulary has one entry
    entropy: NDArray[np.float32]  # [N]
    logsumexp: NDArray[np.float32]  # [N]
    topk_ids: NDArray[np.int32]  # [N, k]
    topk_logits: NDArray[np.float32]  # [N, k]
    boundary_ties: NDArray[np.int32]  # [N]
    digest: NDArray[np.uint64]  # [N]
    nonfinite: NDArray[np.int32]  # [N]

    @classmethod
    def joined(cls, parts: Sequence[LogitStats]) -> LogitStats:
        """Parts one after another; at least one."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def first(self, count: int) -> LogitStats:
        """The first `count` positions."""
        return LogitStats(**{f.name: getattr(self, f.name)[:count] for f in fields(self)})


def measure(rows: torch.Tensor, ids: torch.Tensor) -> LogitStats:
    """Statistics of raw logits [N, vocab] whose chosen ids are int64 [N], in chunks of at most 8 MiB; N >= 1."""
    step = digest.chunk_rows(rows.shape[-1])
    starts = range(0, len(rows), step)
    return LogitStats.joined([_measure_chunk(rows[i : i + step], ids[i : i + step]) for i in starts])


def _measure_chunk(rows: torch.Tensor, ids: torch.Tensor) -> LogitStats:
    wide = rows.to(torch.float32)
    logsumexp, entropy = _partition(wide)
    chosen = wide.gather(1, ids.to(wide.device)[:, None])[:, 0]
    top_ids, top, ties = _top(wide)
    columns: dict[str, Any] = {
        "logprob": (chosen.double() - logsumexp).float(),
        "margin": top[:, 0] - top[:, 1] if top.shape[1] > 1 else torch.full_like(chosen, torch.inf),
        "entropy": (entropy.float().view(torch.int32) & SHOWN_ONLY).view(torch.float32),
        "logsumexp": logsumexp.float(),
        "topk_ids": top_ids.to(torch.int32),
        "topk_logits": top,
        "boundary_ties": ties.to(torch.int32),
        "nonfinite": (~torch.isfinite(wide)).sum(dim=-1).to(torch.int32),
    }
    host = {name: column.cpu().numpy() for name, column in columns.items()}
    return LogitStats(digest=digest.to_u64(digest.row_sums(rows)), **host)


def _partition(wide: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-sum-exp and entropy (nats) of rows, float64 [r]; NaN where the row holds a NaN or a positive infinity.

    With d = x - max and Z = sum of exp(d): logsumexp = max + ln Z, entropy = ln Z - (sum of exp(d) * d) / Z.
    """
    peak = wide.amax(dim=-1, keepdim=True)
    below = (wide - peak).clamp_(min=EXP_FLOOR)
    powers = below.exp()
    total = powers.sum(dim=-1, dtype=torch.float64)
    log_total = total.log()
    entropy = log_total - powers.mul_(below).sum(dim=-1, dtype=torch.float64) / total
    return peak[:, 0].double() + log_total, entropy


def _top(wide: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids and logits of the k best by (logit descending, id ascending), and the ties left out; NaN sorts last.

    The order of equal values in `torch.topk` is not defined, so logit and id are packed into one integer: the float's
    bits made monotone in the upper half, the complement of the id in the lower.
    """
    clean = wide.masked_fill(torch.isnan(wide), -torch.inf) + 0.0  # + 0.0 turns -0.0 into 0.0, which equals it
    bits = clean.view(torch.int32)
    monotone = (bits ^ ((bits >> 31) & 0x7FFF_FFFF)).to(torch.int64)
    descending = torch.arange(2**ID_BITS - 1, 2**ID_BITS - 1 - wide.shape[-1], -1, device=wide.device)
    packed = monotone.bitwise_left_shift_(ID_BITS).add_(descending)
    best = packed.topk(min(TOP_K, wide.shape[-1]), dim=-1, sorted=True).values
    ids = (2**ID_BITS - 1) - (best & digest.LOW_32)
    last = clean.gather(1, ids[:, -1:])
    kept = (clean.gather(1, ids) == last).sum(dim=-1)
    return ids, wide.gather(1, ids), (clean == last).sum(dim=-1) - kept
