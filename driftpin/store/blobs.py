"""Content: every blob once, under the sha256 of its canonical uncompressed bytes. Knows nothing of what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from driftpin.canonical import sha256_hex
from driftpin.errors import CorruptBlobError, NotFoundError
from driftpin.store import tables
from driftpin.store.access import IN_LIMIT, Access, insert_absent
from driftpin.store.faults import RESTORE, corrupt
from driftpin.store.packed import pack, unpack

TABLE = tables.blobs
NAMED = 5  # damaged blobs in a message


@dataclass(frozen=True, kw_only=True)
class Content:
    """A blob to be written. Digest and compressed form are made once, when they are first needed."""

    kind: str
    plain: bytes  # canonical, uncompressed

    @cached_property
    def sha256(self) -> str:
        """The name."""
        return sha256_hex(self.plain)

    @cached_property
    def packed(self) -> bytes:
        """One zstd frame."""
        return pack(self.plain)

    def row(self) -> dict[str, Any]:
        """As stored."""
        return {"sha256": self.sha256, "kind": self.kind, "size": len(self.plain), "data": self.packed}


def write(conn: Connection, contents: Iterable[Content]) -> None:
    """Insert what is absent, in the order of digests so that two writers cannot wait for each other."""
    rows = {content.sha256: content.row() for content in contents}
    insert_absent(conn, TABLE, [rows[sha256] for sha256 in sorted(rows)])


def absent(conn: Connection, contents: Iterable[Content]) -> list[Content]:
    """Those that are not stored yet, each once."""
    wanted = {content.sha256: content for content in contents}
    stored = set(conn.scalars(select(TABLE.c.sha256).where(TABLE.c.sha256.in_(list(wanted)))))
    return [content for sha256, content in wanted.items() if sha256 not in stored]


def _read(row: RowMapping) -> bytes:
    what = f"Blob {row['sha256'][:12]} ({row['kind']})"
    plain = unpack(bytes(row["data"]), row["size"], what)
    if sha256_hex(plain) != row["sha256"]:
        raise corrupt(what, "its content does not match its digest")
    return plain


@dataclass(frozen=True)
class Blobs:
    """Put and get; every read is checked against its digest."""

    access: Access

    def put(self, data: bytes, kind: str) -> str:
        """Store `data` unless it is there already; returns its sha256."""
        content = Content(kind=kind, plain=data)
        if self.prepare([content]):
            with self.access.begin() as conn:
                write(conn, [content])
        return content.sha256

    def prepare(self, contents: Iterable[Content]) -> bool:
        """Compress what is absent before a transaction holds others up; says whether there is anything to write."""
        with self.access.read() as conn:
            new = absent(conn, contents)
        return sum(len(content.packed) for content in new) > 0

    def get(self, sha256: str) -> bytes:
        """The bytes under that digest; raises `NotFoundError` or `CorruptBlobError`."""
        return self.get_many([sha256])[sha256]

    def get_many(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Bytes by digest, each once; raises `NotFoundError` when one is missing."""
        wanted, found = list(dict.fromkeys(digests)), {}
        with self.access.read() as conn:
            for start in range(0, len(wanted), IN_LIMIT):
                query = select(TABLE).where(TABLE.c.sha256.in_(wanted[start : start + IN_LIMIT]))
                found.update({row["sha256"]: _read(row) for row in conn.execute(query).mappings()})
        for sha256 in wanted:
            if sha256 not in found:
                raise NotFoundError(f"Blob {sha256[:12]} is not in the store.", remedy="Run `driftpin db check`.")
        return found

    def corrupt(self) -> list[str]:
        """Digests whose content does not match, by reading every blob."""
        with self.access.read() as conn:
            digests = list(conn.scalars(select(TABLE.c.sha256).order_by(TABLE.c.sha256)))
        return [sha256 for sha256 in digests if not self._sound(sha256)]

    def check(self) -> int:
        """Read every blob and count them; raises `CorruptBlobError` that names those whose content does not match."""
        if damaged := self.corrupt():
            named = ", ".join(sha256[:12] for sha256 in damaged[:NAMED]) + (" …" if len(damaged) > NAMED else "")
            raise CorruptBlobError(f"{len(damaged)} blobs are damaged: {named}.", remedy=RESTORE)
        with self.access.read() as conn:
            return conn.scalar(select(func.count()).select_from(TABLE)) or 0

    def _sound(self, sha256: str) -> bool:
        try:
            self.get(sha256)
        except CorruptBlobError:
            return False
        return True

    def size(self) -> int:
        """Compressed bytes of all blobs."""
        with self.access.read() as conn:
            return int(conn.scalar(select(func.coalesce(func.sum(func.length(TABLE.c.data)), 0))) or 0)
