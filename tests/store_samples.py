"""Values that store tests put in: traces, suites, revisions and running replays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from driftpin.environment.environment import Environment
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import Replay
from driftpin.store.targets import TargetRevision
from driftpin.suite.canary import Canary, Check, CheckKind, Message, Suite
from driftpin.trace.head import Declaration, Head
from driftpin.trace.layers import Layers
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, Probe, Shape, StopReason, TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Trace

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RECIPE = Recipe(engine="fake", model="tiny")
SUITE = Suite(
    name="core",
    canaries=(
        Canary(id="chat", messages=(Message(role="user", content="Hi é\0"),), comment="kept"),
        Canary(id="raw", prompt="1 2 3", checks=(Check(kind=CheckKind.REGEX, value="4"),)),
    ),
)
ENVIRONMENT = Environment(
    model={"weights.model": "ab" * 32},
    stack={"library.torch": "2.13.0", "flags": ["x", None, 3]},
    behaviour={"linear": "cd" * 32},
    context={"host": "h1"},
)


def key(canary: str, probe: Probe = Probe.DECODE) -> TraceKey:
    return TraceKey(canary=canary, probe=probe)


def head(seed: int = 0, n: int = 4, k: int = 3) -> Head:
    random = np.random.default_rng(seed)
    floats = random.standard_normal((3, n)).astype(np.float32)
    floats[0, 0] = np.nan
    declared = Declaration(
        probe=Probe.DECODE, arm=Arm.NATIVE, shape=Shape.ALONE, batch="rows=1", cache="DynamicCache", token_limit=n, k=k
    )
    return Head(
        declared=declared,
        stop=StopReason.LENGTH,
        dtype="float32",
        vocab=50,
        prompt_ids=np.arange(3, dtype=np.int32),
        output_ids=random.integers(0, 50, n, dtype=np.int32),
        logprob=floats[0],
        margin=floats[1],
        entropy=floats[2],
        logsumexp=np.full(n, np.inf, np.float32),
        topk_ids=random.integers(0, 50, (n, k), dtype=np.int32),
        topk_logits=random.standard_normal((n, k)).astype(np.float32),
        boundary_ties=np.zeros(n, np.int32),
        digest=random.integers(0, 2**63, n, dtype=np.uint64),
        nonfinite=np.zeros(n, np.int32),
        greedy=np.ones(n, np.uint8),
    )


def layers(seed: int = 0, blocks: int = 2, n: int = 4) -> Layers:
    cells = np.random.default_rng(seed).integers(0, 2**32, (blocks, n), dtype=np.uint32)
    return Layers(
        blocks=tuple(f"model.layers.{i}" for i in range(blocks)),
        dtype="float32",
        hidden=8,
        first_position=3,
        root="00" * 32,
        cells=cells,
        rms=np.ones((blocks, n), np.uint16),
        absmax=np.ones((blocks, n), np.uint16),
        nonfinite=np.zeros((blocks, n), np.int32),
        prefill=np.zeros(blocks, np.uint64),
        sketch=np.zeros((blocks, 0, 8), np.float32),
        sketch_positions=np.zeros(0, np.int32),
        experts=np.zeros((0, n), np.uint32),
    )


def trace(
    canary: str = "chat", seed: int = 0, rendered: str | None = "Hi", pieces: tuple[bytes, ...] = (b"4",)
) -> Trace:
    return Trace(
        key=key(canary),
        input_digest="11" * 32,
        head=head(seed),
        layers=layers(seed),
        text=TraceText(rendered=rendered, pieces=pieces),
    )


def revision(store: Store, target: str = "chat", **operations: Any) -> TargetRevision:
    store.suites.put(SUITE)
    return store.targets.put(target, RECIPE, operations, SUITE.name)


def queued(store: Store, target: str = "chat", **words: Any) -> Replay:
    created = store.replays.create(revision(store, target), SUITE.digest, Plan(), host="h1", device="cpu", **words)
    assert created is not None
    return created


def running(store: Store, target: str = "chat", **words: Any) -> tuple[str, int]:
    replay = queued(store, target, **words)
    attempt = store.replays.claim(replay.id)
    assert attempt is not None
    return replay.id, attempt


def finished(store: Store, *traces: Trace, target: str = "chat", device_class: str = "cpu-avx512") -> Replay:
    replay_id, attempt = running(store, target)
    environment = store.environments.put(ENVIRONMENT)
    context = store.environments.put_context(ENVIRONMENT.context_to_json())
    store.replays.set_environment(replay_id, attempt, environment, context, {"uptime": "5"}, device_class)
    for recorded in traces or (trace("chat", 1), trace("raw", 2)):
        store.replays.record(replay_id, attempt, recorded)
    store.replays.finish(replay_id, attempt)
    return store.replays.get(replay_id)
