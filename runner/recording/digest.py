"""Digest v1 in torch: the sums of `driftpin.trace.digest`, bit by bit, on whatever device the tensor lives.

int64 arithmetic wraps around as unsigned 64-bit does, and integer sums come out the same in any order. Knows nothing
of models or traces.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from driftpin.trace import digest as reference

CHUNK_BYTES = 8 * 2**20  # what one chunk of rows may occupy once it is widened to 64 bits
LOW_32 = 0xFFFF_FFFF
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def chunk_rows(width: int) -> int:
    """How many rows of `width` numbers fit into one chunk; at least one."""
    return max(1, CHUNK_BYTES // (8 * max(1, width)))


def row_sums(rows: torch.Tensor) -> torch.Tensor:
    """Digest v1 sums of the last axis: rows [..., n] of 8-, 16- or 32-bit floats give int64 [...], same device.

    Raises TypeError for other dtypes: widening only, never rounding.
    """
    if rows.dtype not in FLOATS and not (rows.is_floating_point() and rows.element_size() == 1):
        raise TypeError(f"digest v1 is defined for 8-, 16- and 32-bit floats, not {rows.dtype}")
    flat = rows.reshape(-1, rows.shape[-1])
    step = chunk_rows(rows.shape[-1])
    parts = [_chunk_sums(flat[start : start + step]) for start in range(0, len(flat), step)]
    sums = torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64, device=rows.device)
    return sums.reshape(rows.shape[:-1])


def to_u64(sums: torch.Tensor) -> NDArray[np.uint64]:
    """Sums as unsigned numbers on the host; shape kept."""
    return sums.cpu().contiguous().numpy().view(np.uint64)


def combined(sums: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One sum over many rows' sums: S = sum of w_i * (S_i + 1) mod 2^64 over the last axis, [..., P] gives [...]."""
    with np.errstate(over="ignore"):
        weighted = (sums + np.uint64(1)) * reference.weights(sums.shape[-1])
        return np.asarray(weighted.sum(axis=-1, dtype=np.uint64))


def _chunk_sums(rows: torch.Tensor) -> torch.Tensor:
    """Rows [r, n] to int64 [r]. The `+ 1` of the formula is the sum of the weights, added once."""
    wide = rows.to(torch.float32).contiguous()
    bits = wide.view(torch.int32).to(torch.int64).bitwise_and_(LOW_32)
    bits.masked_fill_(torch.isnan(wide), reference.CANONICAL_NAN)
    weights, total = _weights(rows.shape[-1], rows.device)
    return bits.mul_(weights).sum(dim=-1) + total


@lru_cache(maxsize=16)
def _weights(length: int, device: torch.device) -> tuple[torch.Tensor, int]:
    """The weights [n] as int64 on the device, and their sum mod 2^64 as a signed number."""
    weights = reference.weights(length)
    total = int(weights.sum(dtype=np.uint64).view(np.int64)) if length else 0
    return torch.from_numpy(weights.view(np.int64)).to(device), total
