"""Runs a suite on a model for `driftpin suite check`: replays in child processes, on a store that is thrown away.

The replays are those of any target, by the same worker, so that what is checked is what will be watched. Knows no
opinion; what it returns is read off the store before that goes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftpin.environment.fact import Unknown
from driftpin.errors import ReplayFailedError
from driftpin.settings.process import child_environment
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import ReplayStatus
from driftpin.suite.canary import Suite
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.traceset import TraceSet
from driftpin.verdict.floors import Floors, Perturbed, floors_of
from driftpin.workflow.launch import Listener, launch
from driftpin.workflow.order import Order, place
from driftpin.workflow.suite_check_margins import Measured
from driftpin.workflow.suite_check_order import Dependence, dependences, differing, in_reverse

SEEDS = 4  # of the rounding yardstick, as at blessing
TARGET, PURPOSE = "suite-check", "suite check"
NO_MODEL = "this engine has no configuration of a model"
FAULTY = "The model could not be replayed"

Listening = Callable[[str], AbstractContextManager[Listener]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """What the replays of a suite on one model left."""

    traces: TraceSet  # of the replay in suite order
    measured: tuple[Measured, ...]  # canaries whose decode was measured, in suite order
    outputs: Mapping[str, str]  # texts, by canary
    floors: Floors | None
    dependences: tuple[Dependence, ...] | Unknown


@dataclass(frozen=True, kw_only=True)
class About:
    """What the runner says of a model without its weights."""

    config: Mapping[str, Any]
    pieces: Mapping[int, str]
    static_padding: int
    static_step: int


def run_suite(recipe: Recipe, suite: Suite, listening: Listening) -> Runs:
    """Decode, score and disturb every canary in suite order, then decode and score once more in reverse.

    Raises `ReplayFailedError` with the worker's reason where the model does not run at all.
    """
    with tempfile.TemporaryDirectory(prefix="driftpin-suite-check-") as folder:
        url = f"sqlite:///{Path(folder) / 'check.db'}"
        with Store.open(url, migrate=True) as store:
            bench = _Bench(store, url, recipe, listening)
            first = bench.replay(suite, Plan(yardstick=SEEDS), "suite order")
            return Runs(
                traces=first,
                measured=tuple(_measured(store, suite, first)),
                outputs=_outputs(store, first),
                floors=_floors(store, first),
                dependences=_dependences(bench, suite, first),
            )


@dataclass(frozen=True)
class _Bench:
    store: Store
    url: str
    recipe: Recipe
    listening: Listening

    def replay(self, suite: Suite, plan: Plan, title: str) -> TraceSet:
        """The traces of one finished replay in a fresh process."""
        order = Order(target=TARGET, recipe=self.recipe, operations={}, suite_name=suite.name, suite=suite)
        queued = place(self.store, order, plan, PURPOSE)
        if queued is None:
            raise ReplayFailedError(f"{FAULTY}: it could not be ordered.")
        with self.listening(title) as listener:
            done = launch(self.store, self.url, queued, listener)
        if done.status is not ReplayStatus.FINISHED or done.trace_set is None:
            raise ReplayFailedError(f"{FAULTY}: {done.reason or done.status}")
        return self.store.traces.set(done.trace_set)


def _dependences(bench: _Bench, suite: Suite, first: TraceSet) -> tuple[Dependence, ...] | Unknown:
    if len(suite.canaries) == 1:
        return Unknown("the suite has one canary, which nothing can precede")
    again = Plan(score_on=first.digest)
    differ = differing(first, bench.replay(in_reverse(suite), again, "reversed order"))
    # Only a difference asks for the third run: it tells an order from a target that never repeats itself.
    once_more = differing(first, bench.replay(suite, again, "suite order again")) if differ else {}
    return dependences(suite, differ, once_more)


def _measured(store: Store, suite: Suite, traces: TraceSet) -> Iterable[Measured]:
    heads = store.traces.heads(traces.entries)
    for canary in suite.ids:
        decode = heads.get(TraceKey(canary=canary, probe=Probe.DECODE))
        keys = (TraceKey(canary=canary, probe=Probe.SCORE, shape=Shape.PERTURBED, repeat=n) for n in range(SEEDS))
        if decode is not None:
            yield Measured(
                canary=canary,
                head=decode,
                score=heads.get(TraceKey(canary=canary, probe=Probe.SCORE)),
                perturbed=tuple(heads[key] for key in keys if key in heads),
            )


def _floors(store: Store, traces: TraceSet) -> Floors | None:
    heads = store.traces.heads(traces.entries)
    pairs = [
        Perturbed(canary=key.canary, head=heads[plain], other=head, layers=None, other_layers=None)
        for key, head in heads.items()
        if key.shape is Shape.PERTURBED and (plain := TraceKey(canary=key.canary, probe=Probe.SCORE)) in heads
    ]
    return floors_of(pairs, SEEDS)


def _outputs(store: Store, traces: TraceSet) -> dict[str, str]:
    decodes = [e for e in traces.entries if e.key.probe is Probe.DECODE]
    return {key.canary: text.output for key, text in store.traces.texts(decodes).items()}


def about_model(recipe: Recipe, ids: Iterable[int]) -> About | Unknown:
    """The completed configuration of a recipe's model and some tokens as text, from a child process."""
    if recipe.engine != "transformers":
        return Unknown(NO_MODEL)
    asked = {"path": recipe.path, "trust_remote_code": recipe.trust_remote_code, "ids": sorted(set(ids))}
    done = subprocess.run(
        [sys.executable, "-m", "runner.suite_check"],
        env=dict(os.environ) | child_environment(recipe),
        input=json.dumps(asked),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Unknown(f"the process that reads it ended with exit status {done.returncode}: {said}")
    if "failed" in answer:
        return Unknown(answer["failed"])
    return About(
        config=answer["config"],
        pieces={int(token): text for token, text in answer["pieces"].items()},
        static_padding=answer["static_cache"]["padding"],
        static_step=answer["static_cache"]["step"],
    )
