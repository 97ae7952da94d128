"""Bytes as one zstd frame and back, bounded. Knows nothing of the database."""

from __future__ import annotations

import zstandard

from driftpin.errors import StoreError
from driftpin.store.faults import corrupt

LEVEL = 10
LIMIT = 256 << 20  # bytes, uncompressed: more than this is neither written nor read


def pack(data: bytes) -> bytes:
    """Compress; raises `StoreError` above `LIMIT`."""
    if len(data) > LIMIT:
        raise StoreError(f"A blob of {len(data)} bytes is too big to store.", remedy=f"The limit is {LIMIT} bytes.")
    return zstandard.ZstdCompressor(level=LEVEL).compress(data)


def unpack(packed: bytes, size: int, what: str) -> bytes:
    """Decompress exactly `size` bytes; raises `CorruptBlobError`, and never allocates what only the frame claims."""
    try:
        claimed = zstandard.frame_content_size(packed)
        if claimed != size or not 0 <= size <= LIMIT:
            raise corrupt(what, f"it claims {claimed} bytes instead of {size}")
        data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
    except zstandard.ZstdError as error:
        raise corrupt(what, str(error)) from error
    if len(data) != size:
        raise corrupt(what, f"it has {len(data)} bytes instead of {size}")
    return data
