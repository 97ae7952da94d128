"""Opening, closing, filling up, backing up: what is refused, and with which words."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import store_samples as samples
from sqlalchemy import text

from driftpin.errors import SchemaTooNewError, SchemaTooOldError, StoreError, StoreFullError
from driftpin.store import Store, revision, schema
from driftpin.store.replay import ReplayStatus
from driftpin.trace.traceset import TraceSet


def test_an_absent_store_is_made_only_when_asked_to(empty_url: str) -> None:
    with pytest.raises(SchemaTooOldError, match=r"driftpin db upgrade"):
        Store.open(empty_url)
    assert schema.current(empty_url) is None
    if empty_url.startswith("sqlite"):
        assert not Path(empty_url.removeprefix("sqlite:///")).exists()
    with Store.open(empty_url, migrate=True) as store:
        samples.finished(store)
    with Store.open(empty_url) as store:
        assert store.replays.last("chat") is not None


def test_an_empty_file_is_an_absent_store(tmp_path: Path) -> None:
    (tmp_path / "e.db").touch()
    with pytest.raises(SchemaTooOldError):
        Store.open(f"sqlite:///{tmp_path}/e.db")
    Store.open(f"sqlite:///{tmp_path}/e.db", migrate=True).close()


def test_an_older_store_is_refused_and_left_alone(empty_url: str) -> None:
    schema.upgrade(empty_url, "0001")
    for migrate in (False, True):
        with pytest.raises(SchemaTooOldError, match=f"schema 0001; this driftpin needs {revision.HEAD}"):
            Store.open(empty_url, migrate=migrate)
    assert schema.current(empty_url) == "0001"


@pytest.mark.parametrize("number", ["9999", "f00"])
def test_a_newer_store_is_refused_and_left_alone(database_url: str, number: str) -> None:
    with Store.open(database_url) as store, store.begin() as conn:
        conn.execute(text(f"UPDATE {revision.VERSION_TABLE} SET version_num = '{number}'"))
    with pytest.raises(SchemaTooNewError, match=f"schema {number}.*newer"):
        Store.open(database_url)
    for move in (lambda: schema.upgrade(database_url), lambda: schema.downgrade(database_url, "base")):
        with pytest.raises(SchemaTooNewError):
            move()
    assert schema.current(database_url) == number


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at\n" * 40)
    before = path.read_bytes()
    for migrate in (False, True):
        with pytest.raises(StoreError, match="is not a database"):
            Store.open(f"sqlite:///{path}", migrate=migrate)
    with pytest.raises(StoreError, match="is not a database"):
        schema.upgrade(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as conn:
        conn.execute("CREATE TABLE theirs (x)")
    conn.close()
    before = path.read_bytes()
    for call in (lambda: Store.open(f"sqlite:///{path}", migrate=True), lambda: schema.upgrade(f"sqlite:///{path}")):
        with pytest.raises(StoreError, match="of something else"):
            call()
    assert path.read_bytes() == before


def test_a_folder_that_is_absent_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be opened.*folder"):
        Store.open(f"sqlite:///{tmp_path}/none/x.db", migrate=True)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://ana:hush@h/d", "cannot be kept in mysql"),
        ("hush hush", "cannot be read"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("postgresql://ana:hush@127.0.0.1:1/d", "cannot be reached"),
        ("postgresql://ana:hush@127.0.0.1:1/d?password=hush", "cannot be reached"),
    ],
)
def test_a_store_that_cannot_be_used_is_said_without_the_password(url: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as caught:
        Store.open(url)
    assert "hush" not in str(caught.value)
    assert caught.value.remedy


def test_a_locked_store_is_said(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftpin.store.engine.BUSY_SECONDS", 0)
    with Store.open(sqlite_url) as store, Store.open(sqlite_url) as other, store.begin():
        with pytest.raises(StoreError, match=r"locked by another process.*try again"):
            other.blobs.put(b"x", "text")
        assert other.replays.list() == []


def test_a_full_disk_is_said_and_what_was_recorded_is_kept(sqlite_url: str) -> None:
    with Store.open(sqlite_url) as store:
        replay_id, attempt = samples.running(store)
        kept = store.replays.record(replay_id, attempt, samples.trace("chat", 1))
        with store.begin() as conn:  # the one pooled connection: the limit holds for what follows
            pages = conn.exec_driver_sql("PRAGMA page_count").scalar_one()
            conn.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
        noise = tuple(bytes((i * 7919 + j * 31) % 256 for j in range(97)) * (1 + i % 7) for i in range(4000))
        with pytest.raises(StoreFullError, match="no space left"):
            store.replays.record(replay_id, attempt, samples.trace("raw", 2, pieces=noise))
        with store.begin() as conn:
            conn.exec_driver_sql("PRAGMA max_page_count = 1000000")
        sealed = store.replays.stop(replay_id, attempt, ReplayStatus.FAILED, "disk full")
        assert sealed == TraceSet.of([kept])
        assert store.traces.trace(kept).entry() == kept
        assert store.blobs.corrupt() == []


def test_a_full_postgresql_and_other_refusals_are_told_apart(store: Store) -> None:
    if store.url.startswith("sqlite"):
        with pytest.raises(StoreError, match="no such table"), store.begin() as conn:
            conn.exec_driver_sql("SELECT * FROM nowhere")
        return
    raise_ = "DO $$ BEGIN RAISE EXCEPTION 'it broke' USING ERRCODE = '{}'; END $$"
    with pytest.raises(StoreFullError, match="no space left"), store.begin() as conn:
        conn.exec_driver_sql(raise_.format("53100"))
    with pytest.raises(StoreError, match="locked"), store.begin() as conn:
        conn.exec_driver_sql(raise_.format("40P01"))
    with pytest.raises(StoreError, match="it broke"), store.begin() as conn:
        conn.exec_driver_sql(raise_.format("P0001"))


def test_what_failed_in_a_transaction_is_rolled_back(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.begin() as conn:
        conn.execute(text("INSERT INTO schedules VALUES ('s', '2026-01-01 00:00:00')")).rowcount / 0
    assert store.schedules.last_due("s") is None


def test_a_killed_writer_loses_nothing_that_it_committed(sqlite_url: str) -> None:
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); import store_samples as s\n"
        "from driftpin.store import Store\n"
        "store = Store.open(sys.argv[1]); i, a = s.running(store); e = store.replays.record(i, a, s.trace('chat', 1))\n"
        "with store.begin() as c:\n"
        "    c.exec_driver_sql('DELETE FROM progress'); os.kill(os.getpid(), 9)\n"
    )
    tests = Path(__file__).parent.parent
    killed = subprocess.run([sys.executable, "-c", script, sqlite_url, str(tests)], check=False)
    assert killed.returncode == -9
    with Store.open(sqlite_url) as store:
        (replay,) = store.replays.list()
        assert store.replays.recorded(replay) == TraceSet.of([samples.trace("chat", 1).entry()])


def test_sizes_name_every_table(store: Store) -> None:
    samples.finished(store)
    size = store.size()
    assert size["replays"][0] == 1
    assert size["blobs"][0] == 9  # suite, environment, context, 2 heads, 2 layers, one text of both, manifest
    assert all(size[name][1] > 0 for name in ("replays", "blobs", "suites"))
    assert set(size) >= {"progress", "incidents", "deliveries", "baselines", "comparisons"}


def test_a_backup_is_a_store_of_its_own(sqlite_url: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with Store.open(sqlite_url) as store:
        replay = samples.finished(store)
        store.backup(copy)
        samples.finished(store)
        with pytest.raises(StoreError, match="exists already"):
            store.backup(copy)
        with pytest.raises(StoreError, match=r"cannot be written.*No such file"):
            store.backup(tmp_path / "none" / "copy.db")
    with Store.open(f"sqlite:///{copy}") as copied:
        assert copied.replays.list() == [replay]
        assert copied.blobs.corrupt() == []
    assert sorted(tmp_path.glob("*.part")) == []


def test_postgresql_is_backed_up_by_its_own_tool(store: Store, tmp_path: Path) -> None:
    if not store.url.startswith("sqlite"):
        with pytest.raises(StoreError, match="pg_dump"):
            store.backup(tmp_path / "x")


def test_sqlite_keeps_a_write_ahead_log_and_foreign_keys(sqlite_store: Store) -> None:
    with sqlite_store.read() as conn:
        assert conn.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert conn.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
