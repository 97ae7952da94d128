"""One leader at a time: a file lock beside a SQLite database, an advisory lock on a connection of its own otherwise.

Either lock ends with the process, however that ends. Losing the connection is losing the lead.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine, NullPool, create_engine, func, select, text

from driftpin.errors import StoreError
from driftpin.store.access import lock_number
from driftpin.store.faults import translated

NAME = "driftpin:leader"


class Leadership(Protocol):
    """The right to schedule."""

    def acquire(self) -> bool:
        """Try to lead, without waiting; True when this object leads."""

    def still_held(self) -> bool:
        """Whether it leads now."""

    def release(self) -> None:
        """Step down; harmless when not leading."""


class FileLeadership:
    """An flock on `<database>.leader`. All contenders must be on one host: network file systems may not keep it."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".leader")
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Open and lock the file."""
        if self._handle is not None:
            return True
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    def still_held(self) -> bool:
        """False once the file was removed or replaced, since another could then lock a new one."""
        if self._handle is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._handle), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Closing the file unlocks it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


class AdvisoryLeadership:
    """pg_try_advisory_lock in one session that does nothing else."""

    def __init__(self, engine: Engine) -> None:
        self._engine = create_engine(engine.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        self._connection: Connection | None = None

    def acquire(self) -> bool:
        """Connect and lock; raises `StoreError` when the server cannot be reached."""
        if self.still_held():
            return True
        with translated(self._engine.url):
            connection = self._engine.connect()
            if connection.scalar(select(func.pg_try_advisory_lock(lock_number(NAME)))):
                self._connection = connection
                return True
            connection.close()
        return False

    def still_held(self) -> bool:
        """Ask the session itself; a connection that does not answer has lost the lock."""
        if self._connection is None:
            return False
        try:
            with translated(self._engine.url):
                return bool(self._connection.scalar(text(HELD)) == 1)
        except StoreError:
            self.release()
            return False

    def release(self) -> None:
        """Closing the session unlocks."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None


HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted"
