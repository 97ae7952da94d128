"""Blessing and reverting on both databases."""

from __future__ import annotations

import pytest
import store_samples as samples

from driftpin.errors import BlessError, NotFoundError
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay

CLASS = "cpu-avx512"


def bless(store: Store, replay: Replay, why: str = "first") -> Baseline:
    return store.baselines.put("chat", CLASS, replay.id, {"floors": None, "d": float("nan")}, "ana@h1", why)


def test_a_baseline_holds_its_bundle_and_what_was_measured(store: Store) -> None:
    replay = samples.finished(store)
    baseline = bless(store, replay)
    assert (baseline.number, baseline.supersedes, baseline.blessed_by, baseline.reason) == (1, None, "ana@h1", "first")
    assert (baseline.trace_set, baseline.suite_digest) == (replay.trace_set, samples.SUITE.digest)
    assert baseline.environment == replay.environment
    assert store.baselines.bundle(baseline) == {"floors": None, "d": "NaN"}
    assert store.baselines.current("chat", CLASS) == store.baselines.get(baseline.id) == baseline
    assert store.baselines.current("chat", "gpu") is None
    assert store.baselines.current("other", CLASS) is None


def test_reverting_walks_back_to_none_and_the_trail_keeps_all(store: Store) -> None:
    first, second = bless(store, samples.finished(store)), bless(store, samples.finished(store), "second\0")
    assert (second.number, second.supersedes, second.reason) == (2, first.id, "second␀")
    assert store.baselines.revert("chat", CLASS, "bo", "wrong") == first
    assert store.baselines.current("chat", CLASS) == first
    third = bless(store, samples.finished(store), "third")
    assert (third.number, third.supersedes) == (3, first.id)
    assert store.baselines.revert("chat", CLASS, "bo", "again") == first
    assert store.baselines.revert("chat", CLASS, "bo", "to none") is None
    assert store.baselines.current("chat", CLASS) is None
    with pytest.raises(NotFoundError, match="no current baseline"):
        store.baselines.revert("chat", CLASS, "bo", "nothing left")
    assert store.baselines.revert("chat", CLASS, "bo", "take that one", to=second.id) == second
    assert store.baselines.list("chat") == [third, second, first]
    trail = [(event.action.value, event.baseline_id, event.who) for event in store.baselines.events("chat")]
    assert trail == [
        ("bless", first.id, "ana@h1"),
        ("bless", second.id, "ana@h1"),
        ("revert", first.id, "bo"),
        ("bless", third.id, "ana@h1"),
        ("revert", first.id, "bo"),
        ("revert", None, "bo"),
        ("revert", second.id, "bo"),
    ]


def test_only_a_finished_replay_of_that_target_and_class_is_blessed(store: Store) -> None:
    finished, queued = samples.finished(store), samples.queued(store)
    with pytest.raises(BlessError, match="is of chat on cpu-avx512"):
        store.baselines.put("chat", "gpu", finished.id, {}, "a", "b")
    with pytest.raises(BlessError, match="is of chat"):
        store.baselines.put("other", CLASS, finished.id, {}, "a", "b")
    with pytest.raises(BlessError, match="queued"):
        store.baselines.put("chat", CLASS, queued.id, {}, "a", "b")
    with pytest.raises(NotFoundError):
        store.baselines.put("chat", CLASS, "r-00000000", {}, "a", "b")
    assert store.baselines.list() == []
    assert store.baselines.events() == []


def test_a_target_cannot_be_reverted_to_a_baseline_of_another(store: Store) -> None:
    bless(store, samples.finished(store))
    other = samples.finished(store, target="other")
    foreign = store.baselines.put("other", CLASS, other.id, {}, "a", "b")
    for to in (foreign.id, 999):
        with pytest.raises(NotFoundError, match=f"no baseline {to}"):
            store.baselines.revert("chat", CLASS, "a", "b", to=to)
    with pytest.raises(NotFoundError, match="999"):
        store.baselines.get(999)
