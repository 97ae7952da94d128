"""What is kept of hidden states: each row's digest sum, size and non-finite entries; sketches. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from driftpin.trace import sketch
from runner.recording import digest


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenStats:
    """Statistics of rows; the last axis counts positions."""

    sums: NDArray[np.uint64]  # digest v1
    rms: NDArray[np.float64]  # NaN or infinite where the row has such entries
    absmax: NDArray[np.float32]
    nonfinite: NDArray[np.int32]

    @classmethod
    def joined(cls, parts: Sequence[HiddenStats]) -> HiddenStats:
        """Parts one after another along the last axis; at least one."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts], -1) for f in fields(cls)})

    @classmethod
    def stacked(cls, parts: Sequence[HiddenStats]) -> HiddenStats:
        """Parts of equal shape under a new first axis; at least one."""
        return cls(**{f.name: np.stack([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def first(self, count: int) -> HiddenStats:
        """The first `count` positions."""
        return HiddenStats(**{f.name: getattr(self, f.name)[..., :count] for f in fields(self)})

    def per_lane(self, lanes: int) -> HiddenStats:
        """Rows that were written lane by lane within each position, [P * lanes], as [lanes, P]."""
        return HiddenStats(**{f.name: getattr(self, f.name).reshape(-1, lanes).T for f in fields(self)})


def measure(rows: torch.Tensor) -> HiddenStats:
    """Statistics of hidden states [n, hidden], each of shape [n], in chunks of at most 8 MiB; n >= 1."""
    step = digest.chunk_rows(rows.shape[-1])
    return HiddenStats.joined([_measure_chunk(rows[i : i + step]) for i in range(0, len(rows), step)])


def _measure_chunk(rows: torch.Tensor) -> HiddenStats:
    wide = rows.to(torch.float64)  # the square of a large bfloat16 overflows float32
    return HiddenStats(
        sums=digest.to_u64(digest.row_sums(rows)),
        rms=wide.square().mean(dim=-1).sqrt().cpu().numpy(),
        absmax=rows.abs().amax(dim=-1).float().cpu().numpy(),
        nonfinite=(~torch.isfinite(wide)).sum(dim=-1).to(torch.int32).cpu().numpy(),
    )


def sketched(rows: torch.Tensor) -> NDArray[np.float32]:
    """The random-sign sketch of hidden states [n, hidden]: float32 [n, 8], cut where the states have 16 bits."""
    sums = (rows.to(torch.float64) @ _signs(rows.shape[-1], rows.device)).float().cpu().numpy()
    return sums if rows.element_size() > 2 else sketch.truncate(sums)


def sketch_count(dtype: torch.dtype) -> int:
    """How many positions per block are sketched for states of that dtype."""
    return sketch.POSITIONS_32BIT if dtype.itemsize > 2 else sketch.POSITIONS_16BIT


@lru_cache(maxsize=8)
def _signs(hidden: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(sketch.signs(hidden).T.astype(np.float64)).to(device)
