"""Replays that end early: whoever ended them, what was recorded is sealed, and nothing is called drift."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from replaying import REPLAY, Lab

from driftpin.errors import BlessError, NotFoundError, StoreFullError
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.probe import Shape
from driftpin.workflow.bless import bless, blessing_plan
from driftpin.workflow.launch import launch
from runner.worker import run_replay

NAMES = ("one", "two", "three", "four", "five")
SUITE = Suite(
    name="early",
    canaries=tuple(
        Canary(id=name, prompt=f"Count to {name}", settings=CanarySettings(max_new_tokens=4)) for name in NAMES
    ),
)
RECIPE = Recipe(engine="fake", model="arithmetic")


@pytest.fixture
def lab(sqlite_store: Store, sqlite_url: str) -> Lab:
    """In this process; `url` goes to `launch` where a child is wanted."""
    return Lab(store=sqlite_store, recipe=RECIPE, suite=SUITE)


def faulty(lab: Lab, **faults: Any) -> Replay:
    return lab.queue(REPLAY, options={"faults": faults})


def sealed(store: Store, replay: Replay) -> list[str]:
    """Executions that the manifest holds, in the order in which they ran."""
    entries = store.replays.trace_set(replay).entries
    assert all(store.blobs.get(digest) for entry in entries for digest in entry.blobs)
    return sorted((str(entry.key) for entry in entries), key=lambda key: NAMES.index(key.split("/")[0]))


@pytest.mark.parametrize("how", ["control-c", "stop"])
def test_an_interrupt_in_mid_replay_seals_what_was_recorded(lab: Lab, sqlite_url: str, how: str) -> None:
    queued, stop, done = faulty(lab, slow=1), threading.Event(), []

    def listener(said: Mapping[str, Any]) -> None:
        if said["event"] == "done":
            done.append(said["key"])
            if len(done) == 2:
                signal.raise_signal(signal.SIGINT) if how == "control-c" else stop.set()

    if how == "control-c":
        with pytest.raises(KeyboardInterrupt):
            launch(lab.store, sqlite_url, queued, listener)
    else:
        launch(lab.store, sqlite_url, queued, listener, stop=stop)
    ended = lab.store.replays.get(queued.id)
    assert (ended.status, ended.reason, ended.verdict) == (
        ReplayStatus.INTERRUPTED,
        "interrupted in mid-replay",
        None,
    )
    kept = sealed(lab.store, ended)
    assert kept[:2] == done[:2] == ["one/decode/alone/0", "two/decode/alone/0"]
    assert len(kept) < len(NAMES) * 2
    with pytest.raises(BlessError, match="interrupted"):
        bless(lab.store, ended, "tester", "a test")


def test_a_worker_that_dies_has_failed_with_a_reason_and_never_drifted(lab: Lab, sqlite_url: str) -> None:
    lab.bless()
    ended = launch(lab.store, sqlite_url, faulty(lab, exit="four"), lambda _: None)
    assert (ended.status, ended.verdict) == (ReplayStatus.FAILED, None)
    assert ended.reason is not None
    assert "exit status 70" in ended.reason
    assert sealed(lab.store, ended) == [f"{name}/decode/alone/0" for name in NAMES[:3]]


def test_a_model_that_does_not_load_has_failed_and_recorded_nothing(lab: Lab, sqlite_url: str) -> None:
    ended = launch(lab.store, sqlite_url, faulty(lab, missing_keys=["layers.0.weight"]), lambda _: None)
    assert (ended.status, ended.trace_set, ended.verdict) == (ReplayStatus.FAILED, None, None)
    assert "layers.0.weight" in (ended.reason or "")
    with pytest.raises(NotFoundError, match="has no traces"):
        lab.store.replays.trace_set(ended)


def test_a_time_limit_is_the_reason_of_the_failure(lab: Lab, sqlite_url: str) -> None:
    ended = launch(lab.store, sqlite_url, faulty(lab, slow=60), lambda _: None, limit_seconds=3)
    assert (ended.status, ended.verdict) == (ReplayStatus.FAILED, None)
    assert ended.reason == "the worker was stopped after its time limit of 3 s"


def limit_pages(store: Store, pages: int | None) -> None:
    """Let the database grow by so many pages and no more; there is one connection, so the limit holds from now on."""
    with store.begin() as conn:
        now = conn.exec_driver_sql("PRAGMA page_count").scalar_one()
        conn.exec_driver_sql(f"PRAGMA max_page_count = {1_000_000 if pages is None else now + pages}")


def test_a_full_disk_in_mid_replay_is_a_sentence_and_what_was_recorded_is_kept(lab: Lab) -> None:
    store, done = lab.store, []
    queued = lab.queue(blessing_plan([Shape.ALONE, Shape.FILLED]))

    def progress(said: str, **facts: Any) -> None:
        if said == "done":
            done.append(facts["key"])
            if len(done) == 3:
                limit_pages(store, 2)

    with pytest.raises(StoreFullError, match="no space left") as refusal:
        run_replay(store, queued.id, progress)
    assert "what was recorded before is kept" in str(refusal.value)
    limit_pages(store, None)
    now = store.replays.get(queued.id)
    if now.status is ReplayStatus.RUNNING:  # there was no room for its end either: whoever finds it says so
        store.replays.stop(queued.id, now.attempt, ReplayStatus.FAILED, "found dead")
    ended = store.replays.get(queued.id)
    assert (ended.status, ended.verdict) == (ReplayStatus.FAILED, None)
    entries = store.replays.trace_set(ended).entries
    assert sorted(str(entry.key) for entry in entries) == sorted(done)
    assert 3 <= len(done) < len(NAMES) * 12
    assert store.blobs.corrupt() == []
