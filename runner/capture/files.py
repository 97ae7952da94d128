"""The sha256 of a file's bytes, remembered as long as the file is untouched. Knows nothing of what files mean.

A hash is remembered under (device, inode, size, mtime, ctime): a change of content moves at least the ctime. A file
touched a moment ago is not remembered yet, because a second write could fall into the same clock tick. After a week
every file is read in full again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

from driftpin.canonical import digest_of
from driftpin.settings.cache import cache_folder

WEEK_SECONDS = 7 * 24 * 3600.0  # a remembered hash older than this is not believed: bytes rot without a ctime
SETTLE_NS = 100_000_000  # coarser than the clock tick of any common file system


def file_sha256(path: Path, *, verify: bool = False, settle_ns: int = SETTLE_NS) -> str:
    """sha256 (hex) of the file; `verify` reads it in full whatever is remembered. Raises OSError."""
    stamp = os.stat(path)
    note = _note(stamp)
    if not verify and (known := _read(note)):
        return known
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        after = os.fstat(stream.fileno())
    settled = time.time_ns() - max(after.st_mtime_ns, after.st_ctime_ns) >= settle_ns
    if settled and _note(after) == note:
        _write(note, digest)
    return digest


def write_atomically(path: Path, text: str) -> None:
    """Write a small file in full or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _note(stamp: os.stat_result) -> Path:
    identity = [stamp.st_dev, stamp.st_ino, stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns]
    return cache_folder() / "sha256" / digest_of([str(part) for part in identity])


def _read(note: Path) -> str | None:
    try:
        if time.time() - note.stat().st_mtime > WEEK_SECONDS:
            return None
        text = note.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return text if len(text) == 64 and set(text) <= set("0123456789abcdef") else None


def _write(note: Path, digest: str) -> None:
    with contextlib.suppress(OSError):  # a read-only cache costs time, not correctness
        write_atomically(note, digest)
