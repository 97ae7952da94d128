"""An arithmetic stand-in for a language model: bytes in, logits out, exact on every machine.

Every number is a multiple of 2^-10 below 2^13, so sums are exact in any order and two machines agree in every bit.
Positions see earlier ones through a running mean. What the two arms make of its logits is told here as well. Knows no
suite, no trace and no fault but the ones it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.trace.digest import splitmix64
from runner.engines.fake_faults import BLOCKS, ROUNDINGS, VOCAB, Faults

END, PAD = 256, 257
HIDDEN = 16
GRID = 1024.0
FINER = 16.0  # rounding of the reference arm is that much smaller than the native arm's
DEFECT, DISTURBED = ROUNDINGS, 2 * ROUNDINGS  # first seeds, apart from every seed of a rounding

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
    """Four blocks over sixteen numbers; `faults` damage it as asked, see `runner.engines.fake_faults`."""

    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        self.embeddings = table(VOCAB, 1)
        self.gates = [table(1, 10 + n)[0] for n in range(BLOCKS)]
        self.head = table(VOCAB, 2)
        self.bias = _readable()
        self._damage()

    def _damage(self) -> None:
        if weight := self.faults.weight:
            self.gates[weight.block] = grid(self.gates[weight.block] + weight.by)
        if nan := self.faults.nan:
            self.gates[nan.block] = np.full_like(self.gates[nan.block], np.nan)

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
        if (token := self.faults.one_token) is not None:
            logits[:, token] = 500.0
        return logits.astype(np.float32)


def natively(rows: F32, first: int, faults: Faults) -> F32:
    """What a native kernel makes of exact logits [n, VOCAB]: some are one step of the grid higher, and its faults.

    `first` is the position of the first row: a decode and a score see the same at a position.
    """
    raised = (_signs(rows.shape, faults.rounding, first) + 1) / 2
    moved = rows + raised / np.float32(GRID) + np.float32(faults.logit_noise)
    if noise := faults.native_noise:
        moved = moved + _signs(rows.shape, DEFECT, first) * np.float32(noise.by)
    return moved.astype(np.float32)


def perturbed(rows: F32, seed: int, step: float) -> F32:
    """The yardstick's disturbance: every logit one `step` up or down."""
    return (rows + _signs(rows.shape, DISTURBED + seed) * np.float32(step)).astype(np.float32)


def _signs(shape: tuple[int, ...], seed: int, first: int = 0) -> F32:
    """+1 or -1 by position and id [n, VOCAB], from splitmix64."""
    index = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64((seed << 40) + first * VOCAB)
    return (1.0 - 2.0 * (splitmix64(index) >> np.uint64(63))).astype(np.float32).reshape(shape)


def _readable() -> F32:
    """A bias towards lower-case letters and spaces, so that people can read what it writes."""
    bias = np.full(VOCAB, -24.0, dtype=np.float32)
    bias[[ord(c) for c in "abcdefghijklmnopqrstuvwxyz"]] = 0.0
    bias[ord(" ")] = 4.0
    bias[END] = -9.0
    bias[PAD] = -400.0
    return bias
