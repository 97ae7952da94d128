"""Blobs, suites, targets, environments, traces and comparisons: what goes in comes out, once, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
import store_samples as samples
from sqlalchemy import delete, select, update

from driftpin.canonical import sha256_hex
from driftpin.environment.fact import Unknown
from driftpin.errors import CorruptBlobError, NotFoundError, StoreError
from driftpin.store import Store, packed, tables
from driftpin.store.text import display_json, display_text
from driftpin.suite.canary import Canary, Suite
from driftpin.trace.traceset import Entry

BLOBS = tables.blobs


def test_a_blob_is_stored_once_under_the_digest_of_its_plain_bytes(store: Store) -> None:
    data = bytes(range(256)) * 8192  # 2 MiB
    assert store.blobs.put(data, "text") == sha256_hex(data)
    size = store.blobs.size()
    assert 0 < size < len(data) // 100
    assert store.blobs.put(data, "text") == sha256_hex(data)
    assert store.blobs.size() == size
    assert store.blobs.get(sha256_hex(data)) == data


def test_an_empty_blob_and_many_blobs_come_back(store: Store) -> None:
    wanted = {store.blobs.put(str(i).encode() if i else b"", "text"): i for i in range(7)}
    found = store.blobs.get_many([*wanted, *wanted])
    assert {digest: int(data or b"0") for digest, data in found.items()} == wanted


def test_a_missing_blob_is_named(store: Store) -> None:
    with pytest.raises(NotFoundError, match="ffffffffffff"):
        store.blobs.get("f" * 64)


def test_threads_that_put_the_same_blobs_store_each_once(store: Store) -> None:
    contents = [str(i).encode() * 1000 for i in range(10)]
    barrier = threading.Barrier(4)

    def put_all(order: int) -> None:
        barrier.wait()
        for data in contents[::order]:
            store.blobs.put(data, "text")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put_all, (1, -1, 1, -1)))
    assert store.size()["blobs"][0] == len(contents)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ({"data": packed.pack(b"other bytes of 17")}, "does not match its digest"),
        ({"data": packed.pack(b"seventeen bytes..")[:-3]}, "cannot be read"),
        ({"data": packed.pack(b"longer than it says")}, "19 bytes instead of 17"),
        ({"data": b"no zstd"}, "cannot be read"),
        ({"data": b""}, "cannot be read"),
        ({"size": 1 << 50}, "instead of"),
    ],
    ids=["swapped", "truncated", "longer", "garbage", "empty", "size"],
)
def test_a_damaged_blob_is_refused_and_found(store: Store, damage: dict[str, object], says: str) -> None:
    digest, sound = store.blobs.put(b"seventeen bytes..", "head"), store.blobs.put(b"sound", "head")
    with store.begin() as conn:
        conn.execute(update(BLOBS).where(BLOBS.c.sha256 == digest).values(damage))
    with pytest.raises(CorruptBlobError, match=says) as caught:
        store.blobs.get(digest)
    assert "backup" in str(caught.value)
    assert store.blobs.get(sound) == b"sound"
    assert store.blobs.corrupt() == [digest]
    with pytest.raises(CorruptBlobError, match=f"1 blobs are damaged: {digest[:12]}"):
        store.blobs.check()
    with store.begin() as conn:
        conn.execute(delete(BLOBS).where(BLOBS.c.sha256 == digest))
    assert store.blobs.check() == 1


def test_a_frame_that_claims_terabytes_is_refused_before_it_is_unpacked() -> None:
    import struct

    forged = struct.pack("<IBQ", 0xFD2FB528, 0xE0, 1 << 44) + b"\0" * 8  # a single segment of 16 TiB
    with pytest.raises(CorruptBlobError, match=str(1 << 44)):
        packed.unpack(forged, 1 << 44, "Blob")


def test_a_suite_is_a_new_revision_only_when_it_changed(store: Store) -> None:
    first = store.suites.put(samples.SUITE)
    assert (first.number, first.suite, first.digest) == (1, samples.SUITE, samples.SUITE.digest)
    assert store.suites.put(samples.SUITE) == first
    changed = replace(samples.SUITE, clock="2026-01-01T00:00:00Z")
    second = store.suites.put(changed)
    assert (second.number, store.suites.latest("core")) == (2, second)
    assert store.suites.put(samples.SUITE) == first
    assert store.suites.latest("core") == first
    assert [one.number for one in store.suites.history("core")] == [1, 2]
    assert store.suites.put(Suite(name="other", canaries=(Canary(id="a", prompt="x"),))).number == 1
    with pytest.raises(NotFoundError, match="'none'"):
        store.suites.latest("none")


def test_a_target_is_a_new_revision_only_when_it_changed(store: Store) -> None:
    first = store.targets.put("chat", samples.RECIPE, {"every": "1h"}, "core")
    assert (first.number, first.recipe, first.operations) == (1, samples.RECIPE, {"every": "1h"})
    assert store.targets.put("chat", samples.RECIPE, {"every": "1h"}, "core") == first
    assert store.targets.put("chat", samples.RECIPE, {"every": "2h"}, "core").number == 2
    assert store.targets.put("chat", samples.RECIPE, {"every": "2h"}, "more").number == 3
    moved = store.targets.put("chat", replace(samples.RECIPE, path="/elsewhere"), {"every": "2h"}, "more")
    assert moved.number == 4
    assert store.targets.put("chat", samples.RECIPE, {"every": "1h"}, "core").number == 5
    assert store.targets.latest("chat").number == 5
    assert store.targets.get(first.id) == first
    store.targets.put("another", samples.RECIPE, {}, "core")
    assert store.targets.names() == ["another", "chat"]


def test_an_environment_comes_back_with_its_unknowns_and_context(store: Store) -> None:
    environment = replace(samples.ENVIRONMENT, behaviour={"linear": Unknown("two runs differ")})
    digest = store.environments.put(environment)
    context = store.environments.put_context(environment.context_to_json())
    assert store.environments.get(digest, context) == environment
    assert store.environments.get(digest).context == {}
    assert store.environments.put(replace(environment, context={"host": "h2"})) == digest


def test_context_with_odd_text_is_kept_readable(store: Store) -> None:
    context = store.environments.put_context({"warning": {"value": "a\0b\ud800c"}})
    digest = store.environments.put(samples.ENVIRONMENT)
    assert store.environments.get(digest, context).context == {"warning": "a\0b�c".replace("\0", "␀")}


def test_a_trace_survives_with_nan_odd_bytes_and_a_megabyte(store: Store) -> None:
    pieces = (b"\0", b"\xff\xfe", "é".encode()[:1], b"x" * 2_000_000)
    wanted = samples.trace(rendered="a\0\ud800z", pieces=pieces)
    replay = samples.finished(store, wanted)
    (entry,) = store.replays.trace_set(replay).entries
    found = store.traces.trace(entry)
    assert np.isnan(found.head.logprob[0])
    assert np.isposinf(found.head.logsumexp).all()
    assert found.head.to_bytes() == wanted.head.to_bytes()
    assert found.layers is not None
    assert found.layers.to_bytes() == wanted.layers.to_bytes()
    assert found.text == wanted.text
    assert found.entry() == entry == wanted.entry()


def test_heads_and_texts_come_in_bulk_and_the_unmeasured_say_why(store: Store) -> None:
    replay_id, attempt = samples.running(store)
    same = [samples.trace(name, seed=1) for name in ("a", "b")]
    for recorded in same:
        store.replays.record(replay_id, attempt, recorded)
    gap = store.replays.record_unmeasured(replay_id, attempt, samples.key("c"), "out of\0memory")
    entries = store.replays.finish(replay_id, attempt).entries
    heads = store.traces.heads(entries)
    assert list(heads) == [samples.key("a"), samples.key("b")]
    assert heads[samples.key("a")] is heads[samples.key("b")]
    assert store.traces.texts(entries)[samples.key("a")].output == "4"
    assert gap in entries
    with pytest.raises(NotFoundError, match="out of␀memory"):
        store.traces.head(gap)
    assert store.traces.layers(gap) is None


def test_a_trace_without_layers_has_none(store: Store) -> None:
    replay = samples.finished(store, replace(samples.trace(), layers=None, layers_absent="no block list"))
    (entry,) = store.replays.trace_set(replay).entries
    assert store.traces.layers(entry) is None
    assert entry.layers_absent == "no block list"


def test_a_comparison_is_kept_by_both_sets_and_the_version(store: Store) -> None:
    body = {"outcomes": {"chat": "flip"}, "moved": float("nan"), "text": "\0\ud800"}
    store.comparisons.put("a" * 64, "b" * 64, "1", body)
    kept = store.comparisons.get("a" * 64, "b" * 64, "1")
    assert kept == {"outcomes": {"chat": "flip"}, "moved": "NaN", "text": "␀�"}
    store.comparisons.put("a" * 64, "b" * 64, "1", {"other": 1})
    assert store.comparisons.get("a" * 64, "b" * 64, "1") == kept
    assert store.comparisons.get("b" * 64, "a" * 64, "1") is None
    assert store.comparisons.get("a" * 64, "b" * 64, "2") is None


def test_times_come_back_in_utc_and_naive_ones_are_refused(store: Store) -> None:
    tokyo = datetime(2026, 3, 1, 21, 0, 0, 123456, tzinfo=timezone(timedelta(hours=9)))
    replay = samples.queued(store, series="s", due=tokyo)
    assert replay.due == tokyo
    assert replay.due is not None
    assert replay.due.utcoffset() == timedelta(0)
    with pytest.raises(StoreError, match="no zone"):
        samples.queued(store, series="s", due=datetime(2026, 3, 1))


@pytest.mark.parametrize("name", ["nul\0", "lone\ud800", "x" * 201])
def test_a_name_that_a_database_would_change_is_refused(store: Store, name: str) -> None:
    with pytest.raises(StoreError, match="cannot be a name"):
        store.targets.put(name, samples.RECIPE, {}, "core")
    assert store.targets.names() == []


def test_display_text_is_safe_and_bounded() -> None:
    assert display_text("a\0b\udfffc😀") == "a␀b�c😀"
    assert display_text("x" * 10, 4) == "xxx…"
    long = {"k\0": [float("inf"), ("y" * 9000,), None, True, 7]}
    assert display_json(long) == {"k␀": ["Infinity", ["y" * 9000], None, True, 7]}


def test_the_stored_rows_are_compressed(store: Store) -> None:
    digest = store.blobs.put(b"a" * 100_000, "text")
    with store.read() as conn:
        row = conn.execute(select(BLOBS).where(BLOBS.c.sha256 == digest)).one()
    assert (row.kind, row.size) == ("text", 100_000)
    assert len(row.data) < 200


def test_an_entry_read_back_equals_the_one_recorded(store: Store) -> None:
    replay_id, attempt = samples.running(store)
    entry = store.replays.record(replay_id, attempt, samples.trace())
    assert store.replays.recorded(store.replays.get(replay_id)).entries == (entry,)
    assert isinstance(entry, Entry)
