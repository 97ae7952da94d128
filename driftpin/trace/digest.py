"""Digest v1 of a row of numbers: an integer sum, so that every device and every order of summing gives the same value.

    S = sum of w_i * (b_i + 1) mod 2^64,   w_i = splitmix64(i) | 1,   i restarting per row

b is the row's bit pattern as unsigned 32-bit integers after widening 8- and 16-bit floats to float32 (exact), with
every NaN replaced by one canonical NaN; minus zero stays. splitmix64 is Steele, Lea and Flood's mixer (OOPSLA 2014).
The sum is not adversarial: it finds changes, it does not resist forgery. This module is the numpy form; the torch form
in `runner.recording` must agree with it bit by bit.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCHEME = "v1"
CANONICAL_NAN = 0x7FC0_0000
_GAMMA = 0x9E37_79B9_7F4A_7C15

U64 = NDArray[np.uint64]


def splitmix64(index: NDArray[Any]) -> U64:
    """The index-th output of splitmix64 seeded with zero, for each index; shape kept, dtype uint64."""
    with np.errstate(over="ignore"):
        z = (index.astype(np.uint64) + np.uint64(1)) * np.uint64(_GAMMA)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        mixed: U64 = z ^ (z >> np.uint64(31))
        return mixed


def weights(length: int) -> U64:
    """The odd weights w_0 .. w_(length-1), shape [length]."""
    odd: U64 = splitmix64(np.arange(length)) | np.uint64(1)
    return odd


def row_bits(rows: NDArray[np.floating]) -> NDArray[np.uint32]:
    """Bit patterns of float rows as uint32 after widening to float32, NaNs made canonical; shape kept."""
    bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32).copy()
    bits[np.isnan(rows)] = CANONICAL_NAN
    return bits


def row_sums(rows: NDArray[np.floating]) -> U64:
    """Digest v1 sums of the last axis: rows [..., n] of float16 or float32 give uint64 [...]."""
    bits = row_bits(rows).astype(np.uint64)
    with np.errstate(over="ignore"):
        total: U64 = ((bits + np.uint64(1)) * weights(rows.shape[-1])).sum(axis=-1, dtype=np.uint64)
        return total


def leaf(dtype: str, length: int, total: int) -> bytes:
    """The Merkle leaf of one row: sha256 over scheme, source dtype, row length and sum."""
    return hashlib.sha256(f"{SCHEME}|{dtype}|{length}|".encode() + struct.pack("<Q", total)).digest()


def merkle_root(leaves: list[bytes]) -> str:
    """sha256 Merkle root (hex) of leaves in order; an odd node is carried up; no leaves give the hash of nothing."""
    level = leaves or [hashlib.sha256(b"").digest()]
    while len(level) > 1:
        paired = [hashlib.sha256(level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]
        level = paired + ([level[-1]] if len(level) % 2 else [])
    return level[0].hex()
