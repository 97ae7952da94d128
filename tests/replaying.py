"""Replays in this process or in real children, as the tests order them: a target, a suite, a store."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from driftpin.errors import DriftpinError
from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.canary import Suite
from driftpin.trace.health import Ill
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Shape
from driftpin.workflow.assess import Assessment, assess_replay
from driftpin.workflow.bless import bless, blessing_plan
from driftpin.workflow.launch import launch
from driftpin.workflow.order import Order, place

TARGET = "target"
REPLAY = Plan(score_on=BASELINE)


@dataclass(frozen=True, kw_only=True)
class Lab:
    """One target on one store; `url` is given where replays run in child processes."""

    store: Store
    recipe: Recipe
    suite: Suite
    url: str | None = None
    shapes: Sequence[Shape] = (Shape.ALONE,)
    operations: dict[str, Any] = field(default_factory=dict)

    def queue(self, plan: Plan = REPLAY, purpose: str = "manual", **changes: Any) -> Replay:
        """Order a replay; `changes` are the recipe's."""
        order = Order(
            target=TARGET,
            recipe=replace(self.recipe, **changes),
            operations=self.operations,
            suite_name=self.suite.name,
            suite=self.suite,
        )
        queued = place(self.store, order, plan, purpose)
        assert queued is not None
        return queued

    def run(self, plan: Plan = REPLAY, **changes: Any) -> Replay:
        """Order a replay and run it to its end."""
        queued = self.queue(plan, **changes)
        if self.url is not None:
            done = launch(self.store, self.url, queued, lambda _: None)
            assert done.status is ReplayStatus.FINISHED, done.reason
            return done
        from runner.worker import run_replay

        assert run_replay(self.store, queued.id) is ReplayStatus.FINISHED
        return self.store.replays.get(queued.id)

    def blessing(self, **changes: Any) -> Replay:
        """A replay that is fit to be blessed, as far as its plan goes."""
        return self.run(blessing_plan(self.shapes), **changes)

    def bless(self, accept: Sequence[Ill] = (), **changes: Any) -> Replay:
        """Make a baseline and return its replay."""
        done = self.blessing(**changes)
        bless(self.store, done, "tester", "a test", accept=accept)
        return done

    def assess(self, plan: Plan = REPLAY, **changes: Any) -> Assessment:
        """Replay and hold it against the baseline."""
        return self.judge(self.run(plan, **changes))

    def judge(self, replay: Replay) -> Assessment:
        """Hold a replay against the baseline."""
        return assess_replay(self.store, replay, Policy())


def run_here(store: Store) -> Callable[[Replay], Replay]:
    """Runs a queued replay in this process, however it ends."""

    def ran(queued: Replay) -> Replay:
        from runner.worker import run_replay

        with suppress(DriftpinError):
            run_replay(store, queued.id)
        return store.replays.get(queued.id)

    return ran


def outcomes(found: Assessment) -> dict[str, str]:
    """Each canary's outcome."""
    return {canary.canary: canary.outcome.value for canary in found.verdict.canaries}


def whys(found: Assessment) -> str:
    """Every finding's sentence, to search in."""
    return "\n".join(finding.why for canary in found.verdict.canaries for finding in canary.findings)


def rows(store: Store) -> dict[str, int]:
    """Rows of every table."""
    return {table: count for table, (count, _) in store.size().items()}


def rewritten(source: Path, target: Path, change: Any) -> Path:
    """A copy of a model folder whose tensors `change` has edited in place."""
    from safetensors.torch import load_file, save_file

    from runner.planting import WEIGHTS, copy_model

    copy_model(source, target, WEIGHTS)
    tensors = load_file(source / WEIGHTS)
    change(tensors)
    save_file(tensors, target / WEIGHTS, metadata={"format": "pt"})
    return target


@contextmanager
def kept_process_state() -> Iterator[None]:
    """Loading an engine changes the process for good; a test session has to go on."""
    import torch

    threads, environ = torch.get_num_threads(), dict(os.environ)
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
    for name in set(os.environ) - set(environ):
        del os.environ[name]
    os.environ.update(environ)
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
