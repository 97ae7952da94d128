"""A copy of a SQLite store while others use it. Knows nothing of tables."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection

from driftpin.errors import StoreError, StoreFullError


def copy(conn: Connection, path: Path) -> None:
    """Copy the connection's database into a new file, readable by its owner alone; nothing half-written stays."""
    source = conn.connection.driver_connection
    if not isinstance(source, sqlite3.Connection):
        raise StoreError("This store has no SQLite file.")
    if path.exists():
        raise StoreError(f"{path} exists already.", remedy="Name a new file.")
    part = path.with_name(path.name + ".part")
    with _said(path):
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
        try:
            with closing(sqlite3.connect(part)) as target:
                source.backup(target)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """Errors about the copy, not about the store."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        full = getattr(error, "errno", None) == errno.ENOSPC or getattr(error, "sqlite_errorcode", None) == FULL
        kind = StoreFullError if full else StoreError
        raise kind(
            f"The backup {path} cannot be written: {error}.", remedy="Name a file where there is space."
        ) from error


FULL = sqlite3.SQLITE_FULL
