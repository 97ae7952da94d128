"""One model's baseline on one part of the prompts, blessed once and used for every row. Judges nothing itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.planted.change import VARIABLE, Change
from benchmarks.planted.models import Model
from benchmarks.planted.nursery import Nursery
from driftpin.errors import DriftpinError
from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe, Sampling
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.canary import Suite
from driftpin.trace.health import Ill
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Shape
from driftpin.workflow.assess import Assessment, assess_replay
from driftpin.workflow.bless import SEEDS, bless, blessing_plan
from driftpin.workflow.launch import WORKER, launch
from driftpin.workflow.order import Order, place
from driftpin.workflow.refer import run_beside, worth_referring

TARGET = "planted"
PLANTED_WORKER = "benchmarks.planted.worker"
PATIENCE = 900.0  # seconds for one replay


class NotMeasuredError(DriftpinError):
    """A replay of the matrix did not run to its end."""


@dataclass(frozen=True, kw_only=True)
class Station:
    """A store with a blessed target; rows replay it with changes."""

    store: Store
    url: str
    model: Model
    suite: Suite
    recipe: Recipe
    nursery: Nursery | None = None  # None: every replay in a fresh process

    @classmethod
    @contextmanager
    def opened(cls, model: Model, suite: Suite, work: Path, *, warm: bool = False) -> Iterator[Station]:
        """In a store of its own under `work`, made at first use."""
        work.mkdir(parents=True, exist_ok=True)
        url = f"sqlite:///{work / f'{model.id}-{suite.name}-{suite.digest[:8]}.db'}"
        recipe = Recipe(
            engine="transformers",
            model=model.id,
            path=str(model.folder(work)),
            dtype=model.dtype,
            sampling=Sampling.AS_SHIPPED,
            threads=1,
        )
        nursery = Nursery(recipe) if warm else None
        try:
            with Store.open(url, migrate=True) as store:
                yield cls(store=store, url=url, model=model, suite=suite, recipe=recipe, nursery=nursery)
        finally:
            if nursery is not None:
                nursery.close()

    def bless_once(self) -> bool:
        """The baseline with its reference scores; False where it was there already."""
        if self.store.baselines.list(TARGET):
            return False
        done = self._ended(launch(self.store, self.url, self._queue(blessing_plan([Shape.ALONE]), {}), _nobody))
        referred = run_beside(self.store, done, done.trace_set or "", self._plainly, SEEDS)
        bless(self.store, done, "the matrix", "unchanged", accept=[Ill.ONE_TOKEN], reference=referred)
        return True

    def bless_again(self) -> None:
        """A successor baseline from the replays of the first: the floors of today's code on the same numbers."""
        first = self.store.baselines.list(TARGET)[-1]
        done = self.store.replays.get(first.replay_id)
        referred = run_beside(self.store, done, done.trace_set or "", self._plainly, SEEDS)
        bless(self.store, done, "the matrix", "judged again", accept=[Ill.ONE_TOKEN], reference=referred)

    def replay(self, change: Change, folder: Path) -> Replay:
        """One native replay under a change, of the model in `folder`; raises `NotMeasuredError`."""
        queued = self._queue(Plan(score_on=BASELINE), {**change.recipe, "path": str(folder)})
        return self._ended(self._run(queued, change, change.patch))

    def judge(self, replay: Replay) -> Assessment:
        """The product's opinion."""
        return assess_replay(self.store, replay, Policy())

    def refer(self, replay: Replay, found: Assessment, change: Change) -> Assessment:
        """The opinion once more behind a reference replay, where the product would ask for one."""
        judged = self.store.replays.get(replay.id).baseline_id
        if judged is None or not worth_referring(found):
            return found
        tokens = self.store.baselines.get(judged).trace_set
        run_beside(self.store, replay, tokens, lambda queued: self._run(queued, change, None))
        return self.judge(replay)

    def _run(self, queued: Replay, change: Change, patch: str | None) -> Replay:
        """In a fresh process where the change acts while libraries load, or where no warm one was asked for."""
        if self.nursery is not None and not change.variables and "threads" not in change.recipe:
            return self.nursery.run(self.store, self.url, queued, patch)
        named = {VARIABLE: patch} if patch else {}
        with environment({**change.variables, **named}):
            worker = PLANTED_WORKER if patch else WORKER
            return launch(self.store, self.url, queued, _nobody, PATIENCE, worker=worker)

    def _plainly(self, queued: Replay) -> Replay:
        return launch(self.store, self.url, queued, _nobody, PATIENCE)

    def _queue(self, plan: Plan, changes: Mapping[str, Any]) -> Replay:
        recipe = replace(self.recipe, **changes)
        order = Order(target=TARGET, recipe=recipe, operations={}, suite_name=self.suite.name, suite=self.suite)
        queued = place(self.store, order, plan, "matrix")
        if queued is None:
            raise NotMeasuredError("The replay could not be ordered.")
        return queued

    def _ended(self, replay: Replay) -> Replay:
        if replay.status is not ReplayStatus.FINISHED:
            raise NotMeasuredError(f"The replay {replay.status}: {replay.reason}")
        return replay


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Children started within get the variables too."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in before.items() if name in variables})


def _nobody(_: Mapping[str, Any]) -> None:
    """Nobody listens to the steps of a replay."""
