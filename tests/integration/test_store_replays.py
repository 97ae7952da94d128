"""The life of a replay on both databases: claims, attempts, recording, sealing, finding."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
import store_samples as samples

from driftpin.errors import LateAttemptError, NotFoundError, StoreError, StoreFullError
from driftpin.store import Store
from driftpin.store.replay import ReplayStatus
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, Probe
from driftpin.trace.traceset import TraceSet


class Clock:
    """A time that moves only when told to."""

    def __init__(self) -> None:
        self.time = samples.NOON

    def __call__(self) -> datetime:
        return self.time

    def forward(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(database_url: str, clock: Clock):  # type: ignore[no-untyped-def]
    with Store.open(database_url, now=clock) as opened:
        yield opened


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Results of calls that begin together."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_a_new_replay_is_queued_with_what_was_asked_for(timed: Store) -> None:
    plan = Plan(probes=(Probe.SCORE,), arm=Arm.REFERENCE, score_on="a" * 64, only=("chat",), repeats=3)
    revision = samples.revision(timed)
    replay = timed.replays.create(revision, samples.SUITE.digest, plan, host="h1", device="cuda:0", purpose="confirm")
    assert replay is not None
    assert (replay.id[:2], len(replay.id)) == ("r-", 10)
    assert (replay.status, replay.attempt, replay.plan) == (ReplayStatus.QUEUED, 1, plan)
    assert (replay.target, replay.revision_id, replay.revision_number) == ("chat", revision.id, 1)
    assert (replay.host, replay.device, replay.device_class) == ("h1", "cuda:0", None)
    assert (replay.created_at, replay.started_at, replay.purpose) == (samples.NOON, None, "confirm")
    assert timed.replays.get(replay.id) == replay


def test_a_due_time_of_a_series_is_handed_out_once(store: Store) -> None:
    revision = samples.revision(store)

    def create(due: datetime, series: str = "s"):  # type: ignore[no-untyped-def]
        return store.replays.create(
            revision, samples.SUITE.digest, Plan(), host="h", device="cpu", series=series, due=due
        )

    won = at_once(*[lambda: create(samples.NOON)] * 4)
    assert sum(replay is not None for replay in won) == 1
    assert create(samples.NOON) is None
    assert create(samples.NOON, "other") is not None
    assert create(samples.NOON + timedelta(hours=1)) is not None
    assert samples.queued(store, series="s").due is None
    assert samples.queued(store, series="s").due is None
    with pytest.raises(StoreError, match="needs a series"):
        samples.queued(store, due=samples.NOON)


def test_an_id_drawn_twice_is_drawn_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb"])
    monkeypatch.setattr("driftpin.store.replays.secrets.token_hex", lambda _: next(drawn))
    assert [samples.queued(store).id for _ in range(2)] == ["r-aaaaaaaa", "r-bbbbbbbb"]


def test_one_of_many_claims_wins(store: Store) -> None:
    replay = samples.queued(store)
    won = at_once(*[lambda: store.replays.claim(replay.id)] * 4)
    assert sorted(won, key=str) == [1, None, None, None]
    assert store.replays.get(replay.id).status is ReplayStatus.RUNNING
    assert store.replays.claim("r-00000000") is None


def test_a_late_attempt_can_do_nothing(store: Store) -> None:
    replay_id, first = samples.running(store)
    store.replays.record(replay_id, first, samples.trace("chat", 1))
    assert store.replays.requeue(replay_id, first) == 2
    assert store.replays.claim(replay_id) == 2
    store.replays.record(replay_id, 2, samples.trace("chat", 2))
    environment = store.environments.put(samples.ENVIRONMENT)
    late: list[Callable[[], object]] = [
        lambda: store.replays.record(replay_id, first, samples.trace("raw", 3)),
        lambda: store.replays.record_unmeasured(replay_id, first, samples.key("raw"), "no"),
        lambda: store.replays.set_environment(replay_id, first, environment, None, {}, "cpu"),
        lambda: store.replays.touch(replay_id, first),
        lambda: store.replays.requeue(replay_id, first),
        lambda: store.replays.finish(replay_id, first),
        lambda: store.replays.stop(replay_id, first, ReplayStatus.FAILED, "late"),
    ]
    for call in late:
        with pytest.raises(LateAttemptError, match=r"attempt 2; attempt 1 is refused"):
            call()
    sealed = store.replays.finish(replay_id, 2)
    assert sealed == TraceSet.of([samples.trace("chat", 2).entry()])
    assert store.size()["progress"][0] == 0
    with pytest.raises(LateAttemptError, match="finished"):
        store.replays.record(replay_id, 2, samples.trace("raw", 3))


def test_finishing_seals_everything_and_leaves_no_progress(timed: Store, clock: Clock) -> None:
    replay_id, attempt = samples.running(timed)
    environment = timed.environments.put(samples.ENVIRONMENT)
    context = timed.environments.put_context({"host": {"value": "h1"}})
    timed.replays.set_environment(replay_id, attempt, environment, context, {"t\0": float("nan")}, "cpu-avx512")
    traces = [samples.trace("raw", 2), samples.trace("chat", 1)]
    for recorded in traces:
        timed.replays.record(replay_id, attempt, recorded)
    clock.forward(60)
    sealed = timed.replays.finish(replay_id, attempt)
    assert sealed == TraceSet.of(recorded.entry() for recorded in traces)
    replay = timed.replays.get(replay_id)
    assert (replay.status, replay.trace_set) == (ReplayStatus.FINISHED, sealed.digest)
    assert (replay.environment, replay.context, replay.device_class) == (environment, context, "cpu-avx512")
    assert replay.digests == samples.ENVIRONMENT.digests
    assert replay.volatile == {"t␀": "NaN"}
    assert replay.finished_at == samples.NOON + timedelta(seconds=60)
    assert timed.replays.trace_set(replay) == sealed
    assert timed.size()["progress"][0] == 0


def test_an_environment_must_be_stored_first(store: Store) -> None:
    replay_id, attempt = samples.running(store)
    with pytest.raises(NotFoundError, match="not in the store"):
        store.replays.set_environment(replay_id, attempt, "a" * 64, None, {}, "cpu")


def test_a_stopped_replay_keeps_what_it_recorded(store: Store) -> None:
    replay_id, attempt = samples.running(store)
    store.replays.record(replay_id, attempt, samples.trace("chat", 1))
    reason = "x" * 5000 + "\0"
    sealed = store.replays.stop(replay_id, attempt, ReplayStatus.INTERRUPTED, reason)
    replay = store.replays.get(replay_id)
    assert sealed == store.replays.trace_set(replay) == TraceSet.of([samples.trace("chat", 1).entry()])
    assert replay.status is ReplayStatus.INTERRUPTED
    assert replay.reason == "x" * 3999 + "…"


def test_a_replay_without_traces_stops_but_does_not_finish(store: Store) -> None:
    replay_id, attempt = samples.running(store)
    with pytest.raises(StoreError, match="recorded nothing"):
        store.replays.finish(replay_id, attempt)
    assert store.replays.get(replay_id).status is ReplayStatus.RUNNING
    assert store.replays.stop(replay_id, attempt, ReplayStatus.FAILED, "no model") is None
    with pytest.raises(NotFoundError, match="no model"):
        store.replays.trace_set(store.replays.get(replay_id))


def test_a_queued_replay_can_be_skipped_and_no_replay_stopped_as_finished(store: Store) -> None:
    replay = samples.queued(store)
    with pytest.raises(StoreError, match="stopped as finished"):
        store.replays.stop(replay.id, 1, ReplayStatus.FINISHED, "")
    store.replays.stop(replay.id, 1, ReplayStatus.SKIPPED, "busy")
    assert store.replays.claim(replay.id) is None
    assert store.replays.get(replay.id).reason == "busy"


def test_the_same_execution_is_recorded_once_per_attempt(store: Store) -> None:
    replay_id, attempt = samples.running(store)
    store.replays.record(replay_id, attempt, samples.trace("chat", 1))
    with pytest.raises(StoreError, match="chat/decode/alone/0 already"):
        store.replays.record(replay_id, attempt, samples.trace("chat", 2))
    assert store.replays.finish(replay_id, attempt).entries == (samples.trace("chat", 1).entry(),)


def test_an_unchanged_replay_adds_one_row_below_two_kibibytes(store: Store) -> None:
    samples.finished(store)
    before = store.size()
    replay = samples.finished(store)
    store.replays.set_verdict(replay.id, 1, "match", {"identical": 2})
    added = {name: store.size()[name][0] - rows for name, (rows, _) in before.items()}
    assert {name: rows for name, rows in added.items() if rows} == {"replays": 1}
    bytes_before = sum(size for _, size in store.size().values())
    for _ in range(100):
        again = samples.finished(store)
        store.replays.set_verdict(again.id, 1, "match", {"identical": 2})
    if store.url.startswith("sqlite"):
        assert sum(size for _, size in store.size().values()) - bytes_before <= 100 * 2048
    else:  # dead rows go at the next vacuum, so the live row is weighed alone
        with store.read() as conn:
            assert conn.exec_driver_sql("SELECT max(pg_column_size(r.*)) FROM replays r").scalar_one() <= 1500


def test_a_quota_refuses_new_bytes_before_they_are_written(store: Store) -> None:
    replay_id, attempt = samples.running(store)
    store.replays.record(replay_id, attempt, samples.trace("chat", 1), quota_bytes=1_000_000)
    size = store.blobs.size()
    with pytest.raises(StoreFullError, match="quota"):
        store.replays.record(replay_id, attempt, samples.trace("raw", 2), quota_bytes=size + 10)
    assert store.blobs.size() == size
    store.replays.record(replay_id, attempt, samples.trace("same", 1), quota_bytes=0)
    assert [entry.key.canary for entry in store.replays.finish(replay_id, attempt).entries] == ["chat", "same"]
    other_id, other = samples.running(store, "other")
    store.replays.record(other_id, other, samples.trace("raw", 2), quota_bytes=size + 10)


def test_replays_are_found_by_prefix(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["9f31aaaa", "9f31bbbb", "9f320000"])
    monkeypatch.setattr("driftpin.store.replays.secrets.token_hex", lambda _: next(drawn))
    first, _, third = (samples.queued(store) for _ in range(3))
    assert store.replays.find("r-9f31a") == store.replays.find(first.id) == first
    assert store.replays.find("R-9F32") == third
    with pytest.raises(NotFoundError, match="r-9f31aaaa, r-9f31bbbb"):
        store.replays.find("r-9f31")
    for absent in ("r-0", "r_9f32", "%", "r-9f32\0", "\udc80"):
        with pytest.raises(NotFoundError, match="There is no replay"):
            store.replays.find(absent)


def test_the_last_and_the_list_choose_what_was_asked_for(timed: Store) -> None:
    assert timed.replays.last("chat") is None
    old, new = samples.finished(timed), samples.finished(timed)
    gpu = samples.finished(timed, device_class="gpu")
    queued, other = samples.queued(timed), samples.finished(timed, target="other")
    assert timed.replays.last("chat") == gpu
    assert timed.replays.last("chat", device_class="cpu-avx512") == new
    assert timed.replays.last("chat", status=None) == queued
    assert timed.replays.last("chat", arm=Arm.REFERENCE) is None
    assert timed.replays.last("chat", arm=Arm.NATIVE, status=ReplayStatus.QUEUED) == queued
    assert timed.replays.list("chat") == [queued, gpu, new, old]
    assert timed.replays.list(limit=2) == [other, queued]
    assert timed.replays.list(status=ReplayStatus.QUEUED) == [queued]


def test_a_silent_replay_is_stale_until_it_is_touched(timed: Store, clock: Clock) -> None:
    replay_id, attempt = samples.running(timed)
    samples.queued(timed)
    clock.forward(30)
    assert [replay.id for replay in timed.replays.stale(clock())] == [replay_id]
    timed.replays.touch(replay_id, attempt)
    assert timed.replays.stale(clock()) == []
    clock.forward(1)
    timed.replays.record(replay_id, attempt, samples.trace())
    assert timed.replays.get(replay_id).heartbeat_at == clock()


def test_a_verdict_is_kept_on_the_replay(store: Store) -> None:
    replay = samples.finished(store)
    assert (replay.verdict, replay.summary) == (None, {})
    store.replays.set_verdict(replay.id, None, "unblessed", {"why": "lone \ud800", "moved": float("-inf")})
    again = store.replays.get(replay.id)
    assert (again.verdict, again.baseline_id) == ("unblessed", None)
    assert again.summary == {"why": "lone �", "moved": "-Infinity"}
    with pytest.raises(NotFoundError):
        store.replays.set_verdict("r-00000000", None, "match", {})


def test_two_replays_record_the_same_content_at_once(store: Store) -> None:
    runs = [samples.running(store) for _ in range(3)]
    traces = [samples.trace(f"c{i}", seed=i) for i in range(4)]

    def record(replay_id: str, attempt: int) -> TraceSet:
        for recorded in traces:
            store.replays.record(replay_id, attempt, recorded)
        return store.replays.finish(replay_id, attempt)

    sets = at_once(*[lambda run=run: record(*run) for run in runs])
    assert sets == [TraceSet.of(recorded.entry() for recorded in traces)] * 3
    assert store.blobs.corrupt() == []
