"""How a repository reaches the database: transactions, the clock, and the few statements that differ by database.

Only `Store` makes one of these, so only `Store` opens transactions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable, Insert, Table, func, select

IN_LIMIT = 500  # values in one IN list; SQLite's oldest limit is 999 parameters


@dataclass(frozen=True, kw_only=True)
class Access:
    """`begin` gives a connection inside a write transaction, `read` inside a read-only one; `now` is aware, in UTC."""

    begin: Callable[[], AbstractContextManager[Connection]]
    read: Callable[[], AbstractContextManager[Connection]]
    now: Callable[[], datetime]


def insert_absent(conn: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; those whose key exists are left alone, also when another transaction inserts them meanwhile."""
    if rows:
        conn.execute(insert_or_nothing(conn, table), list(rows))


def insert_or_nothing(conn: Connection, table: Table) -> Insert:
    """INSERT ... ON CONFLICT DO NOTHING, which each dialect has for itself; only the one in use is imported."""
    dialect = import_module(f"sqlalchemy.dialects.{conn.dialect.name}")
    statement: Insert = dialect.insert(table).on_conflict_do_nothing()
    return statement


def serialise(conn: Connection, name: str) -> None:
    """Let one transaction at a time pass for `name`. SQLite has one writer anyway."""
    if conn.dialect.name == "postgresql":
        conn.execute(select(func.pg_advisory_xact_lock(lock_number(name))))


def lock_number(name: str) -> int:
    """A signed 64-bit number for an advisory lock."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)


def changed(conn: Connection, statement: Executable) -> int:
    """Rows that an UPDATE or DELETE touched: how a conditional update says whether it won."""
    result = conn.execute(statement)
    return result.rowcount if isinstance(result, CursorResult) else 0
