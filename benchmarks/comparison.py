"""How long it takes to hold one replay against another, identical or wholly different, as `driftpin compare` does.

    python benchmarks/comparison.py [--canaries 1000] [--tokens 256] [--blocks 30] [--rounds 5] [--format json]

Budget for 1,000 canaries: at most 5 ms for two identical replays and 5 s for two wholly different ones of 256 tokens.
Traces are random numbers of a real trace's shape, in a new SQLite store; each canary is decoded once. `compare` is the
pure function with both sides in memory, `assess` reads manifests, suites and blobs from the store and judges as well.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from _bench import Line, best, parser, processor, report, seconds, sqlite

from driftpin.comparison.compare import compare
from driftpin.comparison.side import Side
from driftpin.environment.environment import Environment
from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.head import TOP_K, Declaration, Head
from driftpin.trace.layers import Layers
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, Greedy, Probe, Shape, StopReason, TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Trace
from driftpin.workflow.assess import assess
from driftpin.workflow.references import Reference, of_replay

PROMPT, VOCAB, HIDDEN = 64, 49152, 576
IDENTICAL, DIFFERENT = 5.0, 5.0  # ms, s


def head(random: np.random.Generator, n: int) -> Head:
    floats = random.standard_normal((4, n)).astype(np.float32)
    ids = random.integers(0, VOCAB, (n, TOP_K), dtype=np.int32)
    declared = Declaration(
        probe=Probe.DECODE, arm=Arm.NATIVE, shape=Shape.ALONE, batch="rows=1", cache="DynamicCache", token_limit=n
    )
    return Head(
        declared=declared,
        stop=StopReason.LENGTH,
        dtype="float32",
        vocab=VOCAB,
        prompt_ids=np.arange(PROMPT, dtype=np.int32),
        output_ids=ids[:, 0].copy(),
        logprob=-np.abs(floats[0]),
        margin=np.abs(floats[1]),
        entropy=np.abs(floats[2]),
        logsumexp=floats[3] + 20,
        topk_ids=ids,
        topk_logits=-np.sort(-random.standard_normal((n, TOP_K)).astype(np.float32), axis=1),
        boundary_ties=np.zeros(n, np.int32),
        digest=random.integers(0, 2**63, n, dtype=np.uint64),
        nonfinite=np.zeros(n, np.int32),
        greedy=np.full(n, next(iter(Greedy)).value, np.uint8),
    )


def layers(random: np.random.Generator, blocks: int, n: int) -> Layers:
    rows = n - 1  # the last token's states are never computed
    return Layers(
        blocks=tuple(f"model.layers.{i}" for i in range(blocks)),
        dtype="float32",
        hidden=HIDDEN,
        first_position=PROMPT,
        root=random.bytes(32).hex(),
        cells=random.integers(0, 2**32, (blocks, rows), dtype=np.uint32),
        rms=random.integers(30000, 30400, (blocks, rows), dtype=np.uint16),
        absmax=random.integers(31000, 31400, (blocks, rows), dtype=np.uint16),
        nonfinite=np.zeros((blocks, rows), np.int32),
        prefill=random.integers(0, 2**63, blocks, dtype=np.uint64),
        sketch=np.zeros((blocks, 0, 8), np.float32),
        sketch_positions=np.zeros(0, np.int32),
        experts=np.zeros((0, rows), np.uint32),
    )


def trace(canary: str, seed: int, tokens: int, blocks: int) -> Trace:
    random = np.random.default_rng(seed)
    return Trace(
        key=TraceKey(canary=canary, probe=Probe.DECODE),
        input_digest="11" * 32,
        head=head(random, tokens),
        layers=layers(random, blocks, tokens),
        text=TraceText(rendered="Write a story.", pieces=tuple(b" w%d" % n for n in random.integers(0, 999, tokens))),
    )


def recorded(store: Store, suite: Suite, seed: int, tokens: int, blocks: int) -> Reference:
    """A finished replay with one decode per canary; equal seeds make equal replays."""
    digest = store.suites.put(suite).digest
    revision = store.targets.put("bench", Recipe(engine="fake", model="fake"), {}, suite.name)
    queued = store.replays.create(revision, digest, Plan(probes=(Probe.DECODE,)), host="h", device="cpu")
    assert queued is not None
    attempt = store.replays.claim(queued.id)
    assert attempt is not None
    environment = Environment(model={"m": "1"}, stack={"s": "1"}, behaviour={"b": "1"}, context={})
    stored = store.environments.put(environment), store.environments.put_context({})
    store.replays.set_environment(queued.id, attempt, *stored, {}, "cpu")
    for number, canary in enumerate(suite.canaries):
        store.replays.record(queued.id, attempt, trace(canary.id, seed + number, tokens, blocks))
    store.replays.finish(queued.id, attempt)
    return of_replay(store.replays.get(queued.id))


def pure(store: Store, suite: Suite, reference: Reference, rounds: int) -> float:
    one = Side(suite=suite, traces=store.traces.set(reference.trace_set))
    return best(lambda: compare(one, replace(one)), rounds)


def main() -> None:
    options = parser(__doc__)
    for name, default in (("canaries", 1000), ("tokens", 256), ("blocks", 30), ("rounds", 5)):
        options.add_argument(f"--{name}", type=int, default=default)
    given = options.parse_args()
    settings = CanarySettings(max_new_tokens=given.tokens)
    canaries = tuple(Canary(id=f"c{n:04}", prompt=f"story {n}", settings=settings) for n in range(given.canaries))
    suite = Suite(name="bench", canaries=canaries)
    with sqlite() as store:
        make = partial(recorded, store, suite, tokens=given.tokens, blocks=given.blocks)
        old, same, other = make(0), make(0), make(1_000_000)
        first = seconds(lambda: assess(store, old, same, Policy()))
        again = best(lambda: assess(store, old, same, Policy()), given.rounds)
        busy = processor(lambda: assess(store, old, same, Policy()), given.rounds)
        alone = pure(store, suite, old, given.rounds)
        different = best(lambda: assess(store, old, other, Policy()), 1)
        worst = processor(lambda: assess(store, old, other, Policy()), 1)
    size = f"{given.canaries} canaries"
    lines = [
        Line(what=f"compare, identical, {size}", measured=alone * 1e3, unit="ms", budget=IDENTICAL),
        Line(what=f"assess, identical, {size}, first", measured=first * 1e3, unit="ms"),
        Line(what=f"assess, identical, {size}, again", measured=again * 1e3, unit="ms", budget=IDENTICAL),
        Line(what=f"assess, identical, {size}, again, processor time", measured=busy * 1e3, unit="ms"),
        Line(what=f"assess, different, {size}, processor time", measured=worst, unit="s"),
        Line(what=f"assess, different, {size}", measured=different, unit="s", budget=DIFFERENT),
    ]
    report(lines, given.format)


if __name__ == "__main__":
    main()
