"""Incidents with their outbox, schedules and leadership, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import store_samples as samples
from sqlalchemy import text

from driftpin.canonical import sha256_hex
from driftpin.errors import NotFoundError, StoreError
from driftpin.store import Store, leadership
from driftpin.store.access import lock_number
from driftpin.store.deliveries import DeliveryState
from driftpin.store.incident import IncidentEventKind, IncidentKind, IncidentState

KEY = sha256_hex(b"chat drifts")
NOW = samples.NOON


@pytest.fixture
def still(database_url: str):  # type: ignore[no-untyped-def]
    """A store whose clock stands."""
    with Store.open(database_url, now=lambda: NOW) as opened:
        yield opened


def see(store: Store, **changes: Any):  # type: ignore[no-untyped-def]
    words = {"severity": "page", "title": "chat drifts", "body": {"canaries": 1}} | changes
    return store.incidents.open_or_update(KEY, target="chat", kind=IncidentKind.DRIFT, **words)


def test_a_cause_opens_one_incident_and_is_counted_when_seen_again(still: Store) -> None:
    first, opened = see(still, first_bad="r-2", last_good="r-1", channels=("log", "hook", "log"))
    assert (first.state, first.count, first.first_bad, first.last_good) == (IncidentState.OPEN, 1, "r-2", "r-1")
    assert opened is not None
    assert (opened.kind, opened.payload["title"]) == (IncidentEventKind.OPENED, "chat drifts")
    again, event = see(still, body={"canaries": 2, "odd": "\0\ud800"}, first_bad="r-3", channels=("log",))
    assert event is None
    assert (again.id, again.count, again.first_bad) == (first.id, 2, "r-2")
    assert again.body == {"canaries": 2, "odd": "␀�"}
    _, updated = see(still, severity="ticket", channels=("log",))
    assert updated is not None
    assert updated.kind is IncidentEventKind.UPDATED
    assert still.incidents.events(first.id) == [opened, updated]
    assert still.incidents.event(opened.id) == opened
    assert [(one.event_id, one.channel) for one in still.deliveries.due(NOW)] == [
        (opened.id, "log"),
        (opened.id, "hook"),
        (updated.id, "log"),
    ]


def test_a_resolved_cause_opens_anew(still: Store) -> None:
    first, _ = see(still)
    resolved = still.incidents.resolve(KEY, "blessed", channels=("log",))
    assert resolved is not None
    ended, event = resolved
    assert (ended.state, ended.resolved_at) == (IncidentState.RESOLVED, NOW)
    assert event is not None
    assert event.payload["reason"] == "blessed"
    assert len(still.deliveries.due(NOW)) == 1
    assert still.incidents.resolve(KEY, "twice") is None
    assert still.incidents.resolve(first.id, "twice") is None
    second, _ = see(still)
    assert second.id != first.id
    assert still.incidents.resolve(second.id, "by id") is not None
    assert still.incidents.unresolved() == []
    assert [one.id for one in still.incidents.list(IncidentState.RESOLVED)] == [second.id, first.id]


def test_an_incident_is_acknowledged_once_and_stays_unresolved(still: Store) -> None:
    first, _ = see(still)
    taken, event = still.incidents.acknowledge(first.id, "ana")
    assert taken.state is IncidentState.ACKNOWLEDGED
    assert event is not None
    assert event.payload["who"] == "ana"
    assert still.incidents.acknowledge(first.id, "bo")[1] is None
    again, _ = see(still)
    assert (again.id, again.state) == (first.id, IncidentState.ACKNOWLEDGED)
    assert still.incidents.unresolved("chat") == [again]
    assert still.incidents.unresolved("other") == []
    with pytest.raises(NotFoundError):
        still.incidents.acknowledge(999, "ana")
    with pytest.raises(NotFoundError):
        still.incidents.get(999)


def test_threads_that_see_one_cause_open_one_incident(store: Store) -> None:
    barrier = threading.Barrier(4)

    def sight(_: int) -> bool:
        barrier.wait()
        return see(store, channels=("log",))[1] is not None

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(sight, range(4))) == [False, False, False, True]
    (incident,) = store.incidents.list()
    assert incident.count == 4


def test_an_event_whose_deliveries_cannot_be_written_is_not_written(still: Store) -> None:
    with pytest.raises(StoreError, match="cannot be a name"):
        see(still, channels=("log", "bad\0"))
    assert still.incidents.list() == []
    assert still.size()["incident_events"][0] == still.size()["deliveries"][0] == 0


def test_a_delivery_is_claimed_once_and_tried_again_after_its_lease(still: Store) -> None:
    see(still, channels=("log",))
    (seen,) = still.deliveries.due(NOW)
    lease = NOW + timedelta(minutes=1)
    assert still.deliveries.claim(seen, lease)
    assert not still.deliveries.claim(seen, lease)
    assert still.deliveries.due(NOW) == []
    (again,) = still.deliveries.due(lease)
    assert (again.attempts, again.idempotency_key) == (1, seen.idempotency_key)
    still.deliveries.mark_failed(again.id, lease + timedelta(hours=1), "503\0")
    assert still.deliveries.due(lease) == []
    (failed,) = still.deliveries.due(lease + timedelta(hours=1))
    assert (failed.state, failed.last_error) == (DeliveryState.FAILED, "503␀")
    still.deliveries.mark_sent(failed.id)
    assert still.deliveries.get(failed.id).last_error is None
    assert still.deliveries.due(lease + timedelta(days=1)) == []
    assert not still.deliveries.claim(still.deliveries.get(failed.id), lease)


def test_deliveries_are_counted_by_state_and_the_dead_stay_dead(still: Store) -> None:
    see(still, channels=("a", "b", "c"))
    first, second, _ = still.deliveries.due(NOW)
    still.deliveries.mark_failed(first.id, NOW, "gone", permanent=True)
    still.deliveries.mark_sent(second.id)
    assert still.deliveries.counts() == {
        DeliveryState.PENDING: 1,
        DeliveryState.SENT: 1,
        DeliveryState.FAILED: 0,
        DeliveryState.DEAD: 1,
    }
    assert [one.channel for one in still.deliveries.due(NOW + timedelta(days=9))] == ["c"]
    assert len(still.deliveries.due(NOW, limit=0)) == 0
    for call in (still.deliveries.get, still.deliveries.mark_sent):
        with pytest.raises(NotFoundError):
            call(999)


def test_a_series_only_moves_forward(store: Store) -> None:
    later = NOW + timedelta(hours=1)
    assert store.schedules.last_due("s") is None
    assert store.schedules.set_due("s", NOW)
    assert not store.schedules.set_due("s", NOW)
    assert store.schedules.set_due("s", later)
    assert not store.schedules.set_due("s", NOW)
    assert store.schedules.last_due("s") == later
    assert store.schedules.set_due("other", NOW)


def test_one_tick_is_handed_out_to_one_scheduler(store: Store) -> None:
    barrier = threading.Barrier(4)

    def tick(_: int) -> bool:
        barrier.wait()
        return store.schedules.set_due("s", NOW)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(tick, range(4))) == [False, False, False, True]


def test_one_of_two_leads_until_it_steps_down(store: Store) -> None:
    one, two = store.leadership(), store.leadership()
    assert not one.still_held()
    assert one.acquire()
    assert one.acquire()
    assert not two.acquire()
    assert (one.still_held(), two.still_held()) == (True, False)
    two.release()
    one.release()
    assert not one.still_held()
    assert two.acquire()
    two.release()


def test_a_lost_connection_is_a_lost_lead(store: Store) -> None:
    one, two = store.leadership(), store.leadership()
    assert one.acquire()
    if isinstance(one, leadership.FileLeadership):
        _lock_file(store).unlink()
    else:
        with store.read() as conn:
            conn.execute(text(KILL), {"low": lock_number(leadership.NAME) & 0xFFFFFFFF})
    assert not one.still_held()
    assert two.acquire()
    two.release()
    one.release()


KILL = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = CAST(:low AS bigint)::oid"
)


def _lock_file(store: Store) -> Path:
    return Path(store.url.removeprefix("sqlite:///") + ".leader")
