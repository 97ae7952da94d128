"""The random-sign sketch: eight sums that let two hidden states be compared without keeping either.

For vectors x, y the mean over j of (s_j·x − s_j·y)² estimates |x − y|² (Achlioptas 2003, signs of ±1). Signs come from
splitmix64, never from a framework's generator, so that every machine uses the same ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftpin.trace.digest import splitmix64

SKETCH_K = 8
POSITIONS_16BIT = 16  # sketched positions per block where the hidden state has 16-bit floats
POSITIONS_32BIT = 10  # and where it has 32-bit floats, whose sums compress less


def signs(hidden: int) -> NDArray[np.float32]:
    """The sign matrix, shape [8, hidden], entries ±1."""
    index = np.arange(SKETCH_K, dtype=np.uint64)[:, None] * np.uint64(2**32) + np.arange(hidden, dtype=np.uint64)
    top = splitmix64(index) >> np.uint64(63)
    return (1.0 - 2.0 * top.astype(np.float32)).astype(np.float32)


def positions(length: int, count: int) -> NDArray[np.int32]:
    """Up to `count` sequence indices spread evenly over 0..length-1, the last one always among them."""
    if length <= count:
        return np.arange(length, dtype=np.int32)
    return np.unique(np.linspace(0, length - 1, count).round().astype(np.int32))


def truncate(sums: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sums of 16-bit states cut to 15 bits of mantissa (3e-5): finer digits would only cost space."""
    return (np.ascontiguousarray(sums).view(np.uint32) & np.uint32(0xFFFF_FF00)).view(np.float32)
