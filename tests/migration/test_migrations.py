"""The migrations: from nothing to the newest schema and back, and the schema that they build is the one in the code."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import store_samples as samples
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect

from driftpin.errors import StoreError
from driftpin.store import Store, engine, revision, schema
from driftpin.store.tables import metadata

ROOT = Path(__file__).resolve().parents[2]


def connected(url: str) -> Engine:
    return engine.make_engine(engine.parse(url))


def tables(url: str) -> set[str]:
    opened = connected(url)
    try:
        return set(inspect(opened).get_table_names())
    finally:
        opened.dispose()


def test_the_code_knows_the_newest_revision() -> None:
    assert schema.head() == revision.HEAD


def test_every_migration_is_numbered_in_order() -> None:
    names = sorted(path.name for path in (schema.scripts() / "versions").glob("*.py"))
    assert [name[:5] for name in names] == [f"{i:04}_" for i in range(1, len(names) + 1)]
    for i, name in enumerate(names, start=1):
        code = (schema.scripts() / "versions" / name).read_text()
        assert f'revision = "{i:04}"' in code
        assert f"down_revision = {f'{chr(34)}{i - 1:04}{chr(34)}' if i > 1 else None}" in code
        assert re.search(r"^def downgrade\(\) -> None:\n    op\.", code, re.MULTILINE)


def test_up_and_down_step_by_step_and_up_again(empty_url: str) -> None:
    assert schema.current(empty_url) is None
    steps = [f"{i:04}" for i in range(1, int(revision.HEAD) + 1)]
    seen = {}
    for step in steps:
        schema.upgrade(empty_url, step)
        assert schema.current(empty_url) == step
        seen[step] = tables(empty_url)
    assert seen[steps[-1]] == {*metadata.tables, revision.VERSION_TABLE}
    for step in reversed(steps):
        assert tables(empty_url) == seen[step]
        schema.downgrade(empty_url, "-1")
    assert tables(empty_url) == {revision.VERSION_TABLE}
    assert schema.current(empty_url) is None
    schema.upgrade(empty_url)
    schema.upgrade(empty_url)
    assert schema.current(empty_url) == revision.HEAD


def test_the_migrated_schema_is_the_one_in_the_code(database_url: str) -> None:
    opened = connected(database_url)
    try:
        with opened.connect() as conn:
            context = MigrationContext.configure(conn, opts={"version_table": revision.VERSION_TABLE})
            assert compare_metadata(context, metadata) == []
    finally:
        opened.dispose()


def test_the_index_of_open_incidents_is_partial_on_both(database_url: str) -> None:
    query = {
        "sqlite": "SELECT sql FROM sqlite_schema WHERE name = 'uq_incidents_open_key'",
        "postgresql": "SELECT indexdef FROM pg_indexes WHERE indexname = 'uq_incidents_open_key'",
    }
    with Store.open(database_url) as store, store.read() as conn:
        made = conn.exec_driver_sql(query[conn.dialect.name]).scalar_one()
    assert re.search(r"UNIQUE INDEX.*WHERE.*state.*<> 'resolved'", made)


def test_rows_survive_a_step_down_and_up(database_url: str) -> None:
    with Store.open(database_url) as store:
        replay = samples.finished(store)
    schema.downgrade(database_url, "0001")
    schema.upgrade(database_url)
    with Store.open(database_url) as store:
        assert store.replays.get(replay.id) == replay
        assert store.blobs.corrupt() == []


def test_two_that_upgrade_at_once_both_succeed(empty_url: str) -> None:
    barrier = threading.Barrier(2)

    def upgrade(_: int) -> None:
        barrier.wait()
        Store.open(empty_url, migrate=True).close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(upgrade, range(2)))
    assert schema.current(empty_url) == revision.HEAD


def test_a_migration_that_fails_changes_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema.upgrade(empty_url, "0001")
    before = tables(empty_url)

    def fail(*_: object) -> None:
        raise StoreError("planted")

    monkeypatch.setattr(schema, "_check_references", fail)
    with pytest.raises(StoreError, match="planted"):
        schema.upgrade(empty_url)
    assert (schema.current(empty_url), tables(empty_url)) == ("0001", before)


def test_missing_migrations_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(schema.driftpin, "__file__", str(tmp_path / "driftpin" / "__init__.py"))
    with pytest.raises(StoreError, match="not installed"):
        schema.scripts()


def test_an_installed_wheel_brings_its_migrations(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site 100%"  # a path that a configuration file would misread
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert (site / "driftpin" / "migrations" / "env.py").is_file()
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from driftpin.store import schema, Store\n"
        "assert str(schema.scripts()) == sys.argv[1] + '/driftpin/migrations', schema.scripts()\n"
        "schema.upgrade(sys.argv[2]); Store.open(sys.argv[2]).close(); print(schema.current(sys.argv[2]))\n"
    )
    url = f"sqlite:///{tmp_path}/wheel.db"
    ran = subprocess.run(
        [sys.executable, "-c", script, str(site), url], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.stdout.strip(), ran.stderr) == (revision.HEAD, "")
