"""The layers of a trace: what each block put out at each position, small enough to keep. Knows nothing of torch.

P positions are the decode steps (decode) or every position of the sequence (score). Cells keep the upper 32 bits of
the digest sum, enough to say where two runs part; the Merkle root over the full sums says whether they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.canonical import sha256_hex
from driftpin.trace import columns

KIND = "layers"
ARRAYS = ("cells", "rms", "absmax", "nonfinite", "prefill", "sketch", "sketch_positions", "experts")
LOG_STEPS = 64  # quantised logarithms: steps per octave
LOG_ZERO, LOG_NONFINITE = 0, 65535
LOG_OFFSET = 256 * LOG_STEPS  # so that float32's smallest subnormal stays above LOG_ZERO


@dataclass(frozen=True, kw_only=True, eq=False)
class Layers:
    """L blocks in module order, P positions, S sketched positions, E mixture-of-experts blocks."""

    blocks: tuple[str, ...]  # module paths, for example "model.layers.0"
    dtype: str  # of the hidden state
    hidden: int  # its width
    first_position: int  # sequence index of the first recorded position
    root: str  # Merkle root (hex) over the leaves of the full sums, block by block
    cells: NDArray[np.uint32]  # [L, P] upper half of the digest v1 sum
    rms: NDArray[np.uint16]  # [L, P] quantised log2, see `quantise`
    absmax: NDArray[np.uint16]  # [L, P] quantised log2
    nonfinite: NDArray[np.int32]  # [L, P]
    prefill: NDArray[np.uint64]  # [L] decode: one digest over all prompt positions; score: empty
    sketch: NDArray[np.float32]  # [L, S, 8] random-sign sums; decode: [L, 0, 8]
    sketch_positions: NDArray[np.int32]  # [S] sequence indices
    expert_blocks: tuple[str, ...] = ()
    experts: NDArray[np.uint32]  # [E, P] digest of the sorted expert ids

    def to_bytes(self) -> bytes:
        """The canonical uncompressed bytes."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        return columns.encode(columns.Columns(kind=KIND, meta=self._meta(), arrays=arrays))

    def _meta(self) -> dict[str, Any]:
        return {
            "blocks": list(self.blocks),
            "dtype": self.dtype,
            "hidden": self.hidden,
            "first_position": self.first_position,
            "root": self.root,
            "expert_blocks": list(self.expert_blocks),
        }

    @property
    def sha256(self) -> str:
        """The name under which the blob is stored."""
        return sha256_hex(self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Layers:
        """Read a blob; raises `CorruptBlobError`."""
        read = columns.decode(data, KIND)
        with columns.reading(KIND):
            meta: dict[str, Any] = dict(read.meta)
            meta |= {"blocks": tuple(meta["blocks"]), "expert_blocks": tuple(meta["expert_blocks"])}
            arrays: dict[str, Any] = {name: read.arrays[name] for name in ARRAYS}
            return cls(**meta, **arrays)


def quantise(values: NDArray[np.floating]) -> NDArray[np.uint16]:
    """Non-negative numbers as log2 in 1/64 octaves (1.1 %), 0 for zero, 65535 for non-finite; shape kept."""
    wide = np.asarray(values, dtype=np.float64)
    safe = np.where(np.isfinite(wide) & (wide > 0), wide, 1.0)
    steps = np.rint(np.log2(safe) * LOG_STEPS) + LOG_OFFSET
    coded = np.where(wide == 0, LOG_ZERO, np.clip(steps, 1, LOG_NONFINITE - 1))
    return np.where(np.isfinite(wide), coded, LOG_NONFINITE).astype(np.uint16)


def dequantise(codes: NDArray[np.uint16]) -> NDArray[np.float64]:
    """The inverse of `quantise` up to its step; non-finite codes give NaN."""
    wide = np.exp2((codes.astype(np.float64) - LOG_OFFSET) / LOG_STEPS)
    return np.where(codes == LOG_ZERO, 0.0, np.where(codes == LOG_NONFINITE, np.nan, wide))
