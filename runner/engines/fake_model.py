"""An arithmetic stand-in for a language model: bytes in, logits out, exact on every machine.

Every number is a multiple of 2^-10 below 2^13, so sums are exact in any order and two machines agree in every bit.
Positions see earlier ones through a running mean. Knows no suite, no trace and no fault but the ones it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.trace.digest import splitmix64

VOCAB = 258  # 256 bytes, end, padding
END, PAD = 256, 257
HIDDEN, BLOCKS = 16, 4
GRID = 1024.0

F32 = NDArray[np.float32]


def grid(values: NDArray[Any]) -> F32:
    """Round to multiples of 2^-10."""
    return (np.round(values * GRID) / GRID).astype(np.float32)


def table(rows: int, salt: int) -> F32:
    """A fixed table [rows, HIDDEN] of numbers in [-1, 1) on the grid, from splitmix64."""
    index = np.arange(rows * HIDDEN, dtype=np.uint64) + np.uint64(salt * 1_000_003)
    unit = (splitmix64(index) >> np.uint64(40)).astype(np.float64) / 2**23 - 1.0
    return grid(unit).reshape(rows, HIDDEN)


@dataclass(eq=False)
class FakeModel:
    """Four blocks over sixteen numbers; `faults` damage it as asked, see `runner.engines.fake`."""

    faults: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.embeddings = table(VOCAB, 1)
        self.gates = [table(1, 10 + n)[0] for n in range(BLOCKS)]
        self.head = table(VOCAB, 2)
        self.bias = _readable()
        self._damage()

    def _damage(self) -> None:
        if weight := self.faults.get("weight"):
            self.gates[weight["block"]] = grid(self.gates[weight["block"]] + weight.get("by", 0.25))
        if nan := self.faults.get("nan"):
            self.gates[nan["block"]] = np.full_like(self.gates[nan["block"]], np.nan)

    def forward(self, ids: Sequence[int]) -> tuple[F32, F32]:
        """Hidden states [BLOCKS, T, HIDDEN] after each block, and logits [T, VOCAB]."""
        x = self.embeddings[np.asarray(ids, dtype=np.int64)]
        states = []
        for gate in self.gates:
            x = self._block(x, gate)
            states.append(x)
        return np.stack(states), self._logits(x)

    @staticmethod
    def _block(x: F32, gate: F32) -> F32:
        counts = np.arange(1, len(x) + 1, dtype=np.float32)[:, None]
        mean = grid(np.cumsum(x, axis=0, dtype=np.float64) / counts)
        mixed = grid(1.25 * x + gate * np.roll(x, 1, axis=1) + 0.75 * mean)
        wrapped: F32 = (mixed - 2 * np.round(mixed / 2)).astype(np.float32)
        return wrapped

    def _logits(self, x: F32) -> F32:
        logits = grid(4.0 * (x @ self.head.T) + self.bias)
        if noise := self.faults.get("logit_noise"):
            logits += np.float32(noise)
        if (token := self.faults.get("one_token")) is not None:
            logits[:, token] = 500.0
        return logits.astype(np.float32)


def _readable() -> F32:
    """A bias towards lower-case letters and spaces, so that people can read what it writes."""
    bias = np.full(VOCAB, -24.0, dtype=np.float32)
    bias[[ord(c) for c in "abcdefghijklmnopqrstuvwxyz"]] = 0.0
    bias[ord(" ")] = 4.0
    bias[END] = -9.0
    bias[PAD] = -400.0
    return bias
