"""Engines for the two databases, with the settings that make them behave alike. Knows nothing of tables.

SQLite: write-ahead log (set once, by the migrations), foreign keys on, writers take the lock at BEGIN (one that took
it at its first write could not wait for another, only fail), readers see one snapshot. PostgreSQL: psycopg 3, UTC.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from driftpin.errors import StoreError

BUSY_SECONDS = 30
CONNECT_SECONDS = 10
WRITER = "driftpin_writer"  # execution option of a connection whose transactions write
SHAPES = "Write sqlite:///driftpin.db or postgresql://user:password@host/database."


def parse(url: str) -> URL:
    """The URL with our driver in it; raises `StoreError` for a database that is not supported, without echoing it."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreError("The store's url cannot be read.", remedy=SHAPES) from None
    name = parsed.drivername.split("+")[0]
    if name in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if name != "sqlite":
        raise StoreError(f"The store cannot be kept in {name}.", remedy=SHAPES)
    if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
        raise StoreError("The store needs a file.", remedy=SHAPES)
    return parsed.set(drivername="sqlite")


def sqlite_path(url: URL) -> Path | None:
    """The database's file; None for PostgreSQL."""
    return Path(str(url.database)) if url.drivername == "sqlite" else None


def make_engine(url: URL, *, foreign_keys: bool = True) -> Engine:
    """An engine that connects at its first use. Migrations run with foreign keys off, since SQLite rebuilds tables."""
    if url.drivername != "sqlite":
        options = {"connect_timeout": CONNECT_SECONDS, "options": "-c timezone=UTC", "application_name": "driftpin"}
        return create_engine(url, pool_pre_ping=True, hide_parameters=True, connect_args=options)
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # sqlite3 itself shall begin nothing: see _begin
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writer = connection.get_execution_options().get(WRITER, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")

    return engine


def use_write_ahead_log(engine: Engine) -> None:
    """Switch a SQLite file over for good; other databases need nothing.

    SQLite refuses the switch at once while anybody else reads or writes, whatever the busy timeout, so it is retried.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while engine.dialect.name == "sqlite":
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise StoreError("The store is locked by another process.", remedy="Try again.") from error
            time.sleep(0.02)
        finally:
            connection.close()
