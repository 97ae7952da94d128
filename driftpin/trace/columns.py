"""The container of a trace blob: a canonical JSON header and named arrays. Knows nothing of what they mean.

Layout: magic, header length (uint32 little-endian), header, then each array as little-endian byte planes (all lowest
bytes, then all second bytes, ...), which makes near numbers compress well. Equal content gives equal bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.canonical import canonical_json
from driftpin.errors import CorruptBlobError

MAGIC = b"DPT1"
ALLOWED = ("<u2", "<u4", "<u8", "<i4", "<f4", "|u1")


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Meta data and arrays of one blob."""

    kind: str
    meta: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def encode(columns: Columns) -> bytes:
    """Canonical uncompressed bytes; arrays are written in the order of their names."""
    names = sorted(columns.arrays)
    arrays = {name: _little_endian(columns.arrays[name]) for name in names}
    listed = [{"name": n, "dtype": arrays[n].dtype.str, "shape": list(arrays[n].shape)} for n in names]
    header = canonical_json({"kind": columns.kind, "meta": dict(columns.meta), "columns": listed})
    return b"".join([MAGIC, struct.pack("<I", len(header)), header, *(_planes(arrays[n]) for n in names)])


def decode(data: bytes, kind: str) -> Columns:
    """The inverse of `encode`; raises `CorruptBlobError` for anything else, without evaluating any of it."""
    with reading(kind):
        return _decode(data, kind)


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Whatever damaged bytes lead to is one error, so that a reader of blobs has one to expect."""
    try:
        yield
    except UNREADABLE as error:
        raise CorruptBlobError(f"A {kind} blob cannot be read: {error}.", remedy=RESTORE) from error


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, struct.error)
RESTORE = "Restore the store from a backup; what is damaged cannot be recomputed."


def _decode(data: bytes, kind: str) -> Columns:
    if data[:4] != MAGIC:
        raise ValueError("it does not begin with the mark of a trace")
    (size,) = struct.unpack("<I", data[4:8])
    header = json.loads(data[8 : 8 + size])
    if header["kind"] != kind:
        raise ValueError(f"it holds {header['kind']!r}")
    arrays, offset = {}, 8 + size
    for column in header["columns"]:
        array, offset = _read(data, offset, column)
        arrays[column["name"]] = array
    if offset != len(data):
        raise ValueError(f"{len(data) - offset} bytes are left over")
    return Columns(kind=kind, meta=header["meta"], arrays=arrays)


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    fixed = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    if fixed.dtype.str not in ALLOWED:
        raise TypeError(f"columns of {array.dtype} are not part of the format")
    return fixed.reshape(array.shape)


def _planes(array: NDArray[Any]) -> bytes:
    return array.reshape(-1).view(np.uint8).reshape(-1, array.itemsize).T.tobytes() if array.size else b""


def _read(data: bytes, offset: int, column: Mapping[str, Any]) -> tuple[NDArray[Any], int]:
    if column["dtype"] not in ALLOWED:
        raise ValueError(f"dtype {column['dtype']!r} is not part of the format")
    dtype, shape = np.dtype(column["dtype"]), tuple(int(n) for n in column["shape"])
    if any(n < 0 for n in shape):
        raise ValueError("a shape is negative")
    count = int(np.prod(shape, dtype=object)) if shape else 1
    end = offset + count * dtype.itemsize
    if end > len(data):
        raise ValueError(f"column {column['name']!r} ends behind the data")
    planes = np.frombuffer(data, np.uint8, count * dtype.itemsize, offset).reshape(dtype.itemsize, count)
    return np.ascontiguousarray(planes.T).view(dtype).reshape(shape), end
