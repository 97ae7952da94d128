"""What a decode leaves behind, step by step: rows copied into small buffers, measured when a buffer is full.

A step costs one copy per block and one for the logits; everything else runs once per chunk. Knows no hooks.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from runner.recording import digest, hidden, logits


class HiddenSteps:
    """Hidden states of one row of the batch, one position per step, from `lanes` blocks that run in any order."""

    def __init__(self, *, lanes: int, limit: int) -> None:
        self._lanes = lanes
        self._limit = limit  # no more steps than this will come
        self._capacity = 0  # steps
        self._filled = 0  # steps
        self._buffer: torch.Tensor | None = None  # [capacity * lanes, hidden]
        self._slots: list[torch.Tensor] = []  # its rows; made once, since indexing costs more than the copy
        self._parts: list[hidden.HiddenStats] = []  # each [lanes, steps]

    def take(self, lane: int, row: torch.Tensor) -> None:
        """Copy the state [hidden] of this step."""
        if self._buffer is None:
            self._allocate(row)
        self._slots[self._filled * self._lanes + lane].copy_(row)

    def step(self) -> None:
        """All lanes have been taken."""
        self._filled += 1
        if self._filled == self._capacity:
            self._flush()

    def finish(self, steps: int) -> hidden.HiddenStats:
        """Statistics [lanes, steps] of the first steps; at least one was taken."""
        self._flush()
        whole = hidden.HiddenStats.joined(self._parts)
        return whole.first(steps)

    def _allocate(self, row: torch.Tensor) -> None:
        steps = digest.chunk_rows(self._lanes * row.shape[-1])
        self._capacity = min(steps, self._limit)
        self._buffer = torch.empty(self._capacity * self._lanes, row.shape[-1], dtype=row.dtype, device=row.device)
        self._slots = list(self._buffer.unbind(0))

    def _flush(self) -> None:
        if self._buffer is None or not self._filled:
            return
        rows = self._buffer[: self._filled * self._lanes]
        self._parts.append(hidden.measure(rows).per_lane(self._lanes))
        self._filled = 0


class LogitSteps:
    """Raw logit rows of one row of the batch. The last row waits until the token chosen from it is known."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._done = 0  # rows measured
        self._filled = 0  # rows waiting
        self._buffer: torch.Tensor | None = None  # [capacity, vocab]
        self._parts: list[logits.LogitStats] = []
        self.dtype = torch.float32
        self.vocab = 0

    def take(self, row: torch.Tensor) -> None:
        """Copy the raw logits [vocab] of this step."""
        if self._buffer is None:
            self.dtype, self.vocab = row.dtype, row.shape[-1]
            capacity = min(digest.chunk_rows(self.vocab), self._limit) + 1
            self._buffer = torch.empty(capacity, self.vocab, dtype=row.dtype, device=row.device)
        self._buffer[self._filled].copy_(row)
        self._filled += 1

    def settle(self, emitted: torch.Tensor) -> None:
        """Told all tokens emitted so far, int64 [t], one per row taken but the last: measure if the buffer is full."""
        if self._buffer is None or self._filled < len(self._buffer):
            return
        self._measure(self._filled - 1, emitted)
        self._buffer[0].copy_(self._buffer[-1])

    def finish(self, output_ids: torch.Tensor) -> logits.LogitStats:
        """Statistics of the rows that chose `output_ids`, int64 [N], N >= 1; later rows are dropped."""
        self._measure(min(self._filled, len(output_ids) - self._done), output_ids)
        return logits.LogitStats.joined(self._parts).first(len(output_ids))

    def _measure(self, count: int, emitted: torch.Tensor) -> None:
        if self._buffer is None or count <= 0:
            return
        self._parts.append(logits.measure(self._buffer[:count], emitted[self._done : self._done + count]))
        self._done += count
        self._filled -= count


class ExpertSteps:
    """Ids of the experts that each router chose for one row of the batch."""

    def __init__(self, *, routers: int) -> None:
        self._chosen: list[list[torch.Tensor]] = [[] for _ in range(routers)]
        self._odd = [False] * routers

    def take(self, router: int, ids: torch.Tensor | None) -> None:
        """Copy ids [positions, k]; None marks the router as not understood."""
        if ids is None:
            self._odd[router] = True
        else:
            self._chosen[router].append(ids.clone())

    def finish(self, positions: int) -> dict[int, NDArray[np.uint32]]:
        """By router: the upper half of digest v1's sum over the sorted ids of each position, [positions]."""
        whole = {r: torch.cat(parts) for r, parts in enumerate(self._chosen) if parts and not self._odd[r]}
        ids = {r: np.sort(chosen.cpu().numpy().astype(np.int64), axis=-1) for r, chosen in whole.items()}
        sums = {r: digest.combined(chosen.astype(np.uint64)) for r, chosen in ids.items()}
        return {r: (s[:positions] >> np.uint64(32)).astype(np.uint32) for r, s in sums.items() if len(s) >= positions}
