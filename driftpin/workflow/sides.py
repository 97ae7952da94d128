"""Reading the two sides of a comparison from the store: manifests, and the blobs that will be asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from driftpin.comparison.compare import needed
from driftpin.comparison.side import Side
from driftpin.environment.environment import Environment
from driftpin.store import Store
from driftpin.store.replay import Replay
from driftpin.trace.head import Head
from driftpin.trace.layers import Layers
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry, TraceSet


def sides_of(store: Store, suites: tuple[str, str], trace_sets: tuple[str, str]) -> tuple[Side, Side]:
    """Baseline and candidate by the digests of their suites and trace sets, filled as `compare` needs them."""
    sides = [_side(store, suite, traces) for suite, traces in zip(suites, trace_sets, strict=True)]
    wanted = needed(sides[0], sides[1])
    return _filled(store, sides[0], wanted[0]), _filled(store, sides[1], wanted[1])


def environment(store: Store, replay: Replay) -> Environment:
    """The environment of a replay; one that ended before it captured anything has an empty one."""
    if replay.environment is None:
        return Environment(model={}, stack={}, behaviour={})
    return store.environments.get(replay.environment, replay.context)


def _side(store: Store, suite: str, traces: str) -> Side:
    return Side(suite=store.suites.get(suite).suite, traces=_parsed(store.blobs.get(traces)))


@lru_cache(maxsize=8)
def _parsed(manifest: bytes) -> TraceSet:
    """Manifests are held against each other again and again; equal ones become one object, which compares at once."""
    return TraceSet.from_bytes(manifest)


def _filled(store: Store, side: Side, entries: list[Entry]) -> Side:
    """The same side with the blobs that a comparison will ask for, read in bulk."""
    heads = store.blobs.get_many([e.head for e in entries if e.head])
    layers = store.blobs.get_many([e.layers for e in entries if e.layers])
    texts = store.blobs.get_many([e.text for e in entries if e.text])
    return replace(
        side,
        heads={digest: Head.from_bytes(data) for digest, data in heads.items()},
        layers={digest: Layers.from_bytes(data) for digest, data in layers.items()},
        texts={digest: TraceText.from_bytes(data) for digest, data in texts.items()},
    )
