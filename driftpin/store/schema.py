"""Migrations: bring a database to a revision, or say which one it has. Alembic is imported only here.

The scripts lie in `migrations/` at the repository's root, and in `driftpin/migrations` once installed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

import driftpin
from driftpin.errors import StoreError
from driftpin.store import engine as engines
from driftpin.store import revision
from driftpin.store.access import serialise
from driftpin.store.faults import shown, translated


def scripts() -> Path:
    """The folder of the migration scripts."""
    package = Path(driftpin.__file__).resolve().parent
    for folder in (package / "migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise StoreError("The migrations are not installed.", remedy="Install driftpin again.")


def head() -> str:
    """The newest revision among the scripts."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def current(url: str) -> str | None:
    """The database's revision, None for one that has none or does not exist; makes no file."""
    parsed = engines.parse(url)
    path = engines.sqlite_path(parsed)
    if path is not None and not path.exists():
        return None
    engine = engines.make_engine(parsed)
    try:
        with translated(parsed), engine.connect() as conn:
            return revision.read(conn)
    finally:
        engine.dispose()


def upgrade(url: str, to: str = "head") -> None:
    """Bring the database up to `to`, making it where SQLite has none. All in one transaction."""
    _run(url, lambda config: command.upgrade(config, to))


def downgrade(url: str, to: str) -> None:
    """Bring the database down to `to` ("base" removes every table of ours)."""
    _run(url, lambda config: command.downgrade(config, to))


def _run(url: str, move: Callable[[Config], None]) -> None:
    parsed = engines.parse(url)
    engine = engines.make_engine(parsed, foreign_keys=False)
    try:
        with translated(parsed), engine.connect().execution_options(**{engines.WRITER: True}) as conn, conn.begin():
            revision.refuse_foreign(conn, shown(parsed))
            serialise(conn, "migration")
            _refuse_newer(conn, shown(parsed))
            move(_config(conn))
            _check_references(conn, shown(parsed))
        engines.use_write_ahead_log(engine)
    finally:
        engine.dispose()


def _refuse_newer(conn: Connection, where: str) -> None:
    found = revision.read(conn)
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found is not None and found not in known:
        revision.check(found, where)


def _check_references(conn: Connection, where: str) -> None:
    """Foreign keys were off while SQLite rebuilt tables; look once before the commit."""
    if conn.dialect.name == "sqlite" and conn.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
        raise StoreError(f"The migration of {where} would break references; nothing was changed.")


def _config(conn: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.attributes["connection"] = conn
    return config
