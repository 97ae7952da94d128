"""The store: the one class that opens transactions. Everything else about it is in the repositories it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, func, select, text

from driftpin.errors import SchemaTooOldError, StoreError
from driftpin.store import backup, revision
from driftpin.store import engine as engines
from driftpin.store.access import Access
from driftpin.store.baselines import Baselines
from driftpin.store.blobs import Blobs
from driftpin.store.comparisons import Comparisons
from driftpin.store.deliveries import Deliveries
from driftpin.store.environments import Environments
from driftpin.store.faults import shown, translated
from driftpin.store.incidents import Incidents
from driftpin.store.leadership import AdvisoryLeadership, FileLeadership, Leadership
from driftpin.store.replays import Replays
from driftpin.store.schedules import Schedules
from driftpin.store.suites import Suites
from driftpin.store.tables import metadata
from driftpin.store.targets import Targets
from driftpin.store.traces import Traces


def utc_now() -> datetime:
    """The time, aware, in UTC."""
    return datetime.now(UTC)


class Store:
    """One database. Use `open`; close it, or use it as a context manager. Safe to share between threads."""

    def __init__(self, engine: Engine, now: Callable[[], datetime] = utc_now) -> None:
        self._engine = engine
        access = Access(begin=self.begin, read=self.read, now=now)
        self.blobs = Blobs(access)
        self.suites = Suites(access, self.blobs)
        self.targets = Targets(access)
        self.environments = Environments(self.blobs)
        self.traces = Traces(self.blobs)
        self.replays = Replays(access, self.blobs)
        self.baselines = Baselines(access, self.blobs)
        self.comparisons = Comparisons(access)
        self.incidents = Incidents(access)
        self.deliveries = Deliveries(access)
        self.schedules = Schedules(access)

    @classmethod
    def open(cls, url: str, *, migrate: bool = False, now: Callable[[], datetime] = utc_now) -> Self:
        """Open a database whose schema this driftpin can use.

        With `migrate` an absent or empty one is made first; an older one is never upgraded here. Raises
        `SchemaTooOldError`, `SchemaTooNewError`, or `StoreError` for what is no store or cannot be reached.
        """
        parsed = engines.parse(url)
        path = engines.sqlite_path(parsed)
        if path is not None and not migrate and (not path.exists() or path.stat().st_size == 0):
            raise SchemaTooOldError(f"There is no store at {path} yet.", remedy=revision.UPGRADE)
        store = cls(engines.make_engine(parsed), now)
        try:
            store._check_schema(url, migrate)
        except BaseException:
            store.close()
            raise
        return store

    def _check_schema(self, url: str, migrate: bool) -> None:
        where = shown(self._engine.url)
        with self.read() as conn:
            revision.refuse_foreign(conn, where)
            found = revision.read(conn)
        if found is None and migrate:
            from driftpin.store import schema  # noqa: PLC0415 - Alembic's import is slow and rarely needed

            schema.upgrade(url)
        else:
            revision.check(found, where)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A write transaction: committed at the end, rolled back on an exception."""
        with translated(self._engine.url), self._engine.connect() as conn:
            conn.execution_options(**{engines.WRITER: True})
            with conn.begin():
                yield conn

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction for reading."""
        with translated(self._engine.url), self._engine.connect() as conn, conn.begin():
            yield conn

    @property
    def url(self) -> str:
        """Where the store is, without the password."""
        return shown(self._engine.url)

    def leadership(self) -> Leadership:
        """A fresh contender for the right to schedule on this store."""
        path = engines.sqlite_path(self._engine.url)
        return AdvisoryLeadership(self._engine) if path is None else FileLeadership(path)

    def size(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes on disk, indexes included, by table name."""
        with self.read() as conn:
            rows = {t.name: conn.scalar(select(func.count()).select_from(t)) or 0 for t in metadata.sorted_tables}
            return {name: (rows[name], _bytes(conn, name)) for name in sorted(rows)}

    def backup(self, path: Path) -> None:
        """Copy a SQLite store into a new file while others use it; raises `StoreError` for any other store."""
        if engines.sqlite_path(self._engine.url) is None:
            raise StoreError("A PostgreSQL store is backed up by its own tools.", remedy="Run `pg_dump`.")
        with translated(self._engine.url), self._engine.connect() as conn:
            backup.copy(conn, path)

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _bytes(conn: Connection, table: str) -> int:
    if conn.dialect.name == "postgresql":
        return int(conn.scalar(text("SELECT pg_total_relation_size(CAST(:name AS regclass))"), {"name": table}) or 0)
    query = text(
        "SELECT sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) WHERE tbl_name = :name AND aggregate = TRUE"
    )
    return int(conn.scalar(query, {"name": table}) or 0)
