"""One replay's executions, in their fixed order: load, capture, warm up, decode everything, score everything.

Knows engines by their protocol and the store by its methods; makes no comparison.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from driftpin.environment.environment import Environment
from driftpin.environment.fact import Unknown
from driftpin.errors import CannotMeasureError, DriftpinError, StoreError
from driftpin.store import Store
from driftpin.store.replay import Replay
from driftpin.suite.canary import Canary, Suite
from driftpin.trace.plan import BASELINE
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.traceset import Trace, TraceSet
from runner.engines.protocol import Engine, Rendered, ScoreRequest
from runner.engines.registry import build

VOLATILE = "now."  # context facts of this prefix change from one replay to the next and stay on its row
NO_TOKENS = "the canary's decode was not measured, so there are no tokens to score"

T = TypeVar("T")


class Progress(Protocol):
    """Who listens to the steps of a replay."""

    def __call__(self, event: str, **facts: Any) -> None:
        """`loading`, `planned` (executions), `block` (done, of), `done` (key, measured), `finished`.

        `block` only where the reference arm loads them one by one.
        """


class Execution:
    """The run of one claimed attempt."""

    def __init__(self, store: Store, replay: Replay, attempt: int, progress: Progress) -> None:
        self.store, self.replay, self.attempt, self.progress = store, replay, attempt, progress
        self.revision = store.targets.get(replay.revision_id)
        self.suite: Suite = store.suites.get(replay.suite_digest).suite
        self.quota: int | None = self.revision.operations.get("quota")
        self.rendered: dict[str, Rendered | str] = {}  # by canary: the prompt, or why there is none
        self.given: dict[str, Sequence[int]] = {}  # by canary: tokens to score
        self.own: dict[str, Sequence[int]] = {}

    def run(self) -> None:
        """Execute the plan and seal it; errors of one canary become its reason, others end the replay."""
        self.progress("loading", engine=self.revision.recipe.engine)
        engine = build(self.revision.recipe, self.replay.plan.arm, self.suite)
        try:
            engine.load()
            self._keep_environment(engine.environment(verify_weights=self.replay.plan.verify_weights))
            self._prepare(engine)
            self._execute_all(engine)
        finally:
            engine.close()
        self.store.replays.finish(self.replay.id, self.attempt)
        self.progress("finished")

    def _canaries(self) -> tuple[Canary, ...]:
        only = set(self.replay.plan.only)
        return tuple(c for c in self.suite.canaries if not only or c.id in only)

    def _keys(self) -> Iterator[TraceKey]:
        """Suite order within each (probe, shape, repeat); every decode before any score."""
        plan = self.replay.plan
        for probe in sorted(plan.probes, key=list(Probe).index):
            for shape in plan.shapes:
                for repeat in range(plan.repeats):
                    for canary in self._canaries():
                        yield TraceKey(canary=canary.id, probe=probe, shape=shape, repeat=repeat)
        for seed in range(plan.yardstick):
            for canary in self._canaries():
                yield TraceKey(canary=canary.id, probe=Probe.SCORE, shape=Shape.PERTURBED, repeat=seed)

    def _keep_environment(self, environment: Environment) -> None:
        device_class = environment.stack.get("device.class")
        self.device_class = "unknown" if isinstance(device_class, Unknown) else str(device_class)
        stable = {n: f for n, f in environment.context_to_json().items() if not n.startswith(VOLATILE)}
        volatile = {n: f for n, f in environment.context_to_json().items() if n.startswith(VOLATILE)}
        self.store.replays.set_environment(
            self.replay.id,
            self.attempt,
            self.store.environments.put(environment),
            self.store.environments.put_context(stable),
            volatile,
            self.device_class,
        )

    def _prepare(self, engine: Engine) -> None:
        self.given = self._given_tokens()
        for canary in self._canaries():
            self.rendered[canary.id] = _attempted(partial(engine.render, canary, self.suite.clock))
        self.progress("planned", executions=sum(1 for _ in self._keys()))
        engine.warm_up()
        if self.replay.plan.observer_check:
            self._observe(engine)

    def _observe(self, engine: Engine) -> None:
        """Recording must not change what it records; one canary proves it for the model."""
        for canary in self._canaries():
            rendered = self.rendered[canary.id]
            if isinstance(rendered, Rendered):
                if disturbed := engine.observer_check(canary, rendered):
                    raise CannotMeasureError(f"Recording changes this model's logits: {disturbed}.")
                return

    def _given_tokens(self) -> dict[str, Sequence[int]]:
        """Outputs of the decode that the plan's scores are forced on, by canary."""
        source = self._score_source()
        return {} if source is None else decoded_tokens(self.store, source)

    def _score_source(self) -> TraceSet | None:
        wanted = self.replay.plan.score_on
        if wanted == BASELINE:
            baseline = self.store.baselines.current(self.replay.target, self.device_class)
            wanted = baseline.trace_set if baseline else None
        return self.store.traces.set(wanted) if wanted else None

    def _execute_all(self, engine: Engine) -> None:
        """Scores come last, so what they are forced on is known before the first of them."""
        foreseen = False
        for key in self._keys():
            if key.probe is Probe.SCORE and not foreseen:
                engine.foresee(self._scores(), self._blocks)
                foreseen = True
            self._execute(engine, key)

    def _blocks(self, done: int, of: int) -> None:
        self.progress("block", done=done, of=of)

    def _scores(self) -> list[ScoreRequest]:
        found = []
        for key in self._keys():
            rendered, tokens = self.rendered[key.canary], self._tokens(key.canary)
            if key.probe is Probe.SCORE and isinstance(rendered, Rendered) and tokens:
                canary = self.suite.canary(key.canary)
                found.append(ScoreRequest(key=key, canary=canary, rendered=rendered, output_ids=tuple(tokens)))
        return found

    def _tokens(self, canary: str) -> Sequence[int]:
        """What a canary's scores are forced on; none where no decode was measured."""
        return self.given.get(canary) or self.own.get(canary) or ()

    def _execute(self, engine: Engine, key: TraceKey) -> None:
        rendered = self.rendered[key.canary]
        result = rendered if isinstance(rendered, str) else self._measure(engine, key, rendered)
        if isinstance(result, str):
            self.store.replays.record_unmeasured(self.replay.id, self.attempt, key, result)
        else:
            self.store.replays.record(self.replay.id, self.attempt, result, self.quota)
        self.progress("done", key=str(key), measured=not isinstance(result, str))

    def _measure(self, engine: Engine, key: TraceKey, rendered: Rendered) -> Trace | str:
        canary = self.suite.canary(key.canary)
        if key.probe is Probe.SCORE:
            tokens = self._tokens(key.canary)
            if not tokens:
                return NO_TOKENS
            return _attempted(lambda: engine.score(key, canary, rendered, tokens))
        result = _attempted(lambda: engine.decode(key, canary, rendered))
        if isinstance(result, Trace) and key.shape is Shape.ALONE and key.repeat == 0:
            self.own[key.canary] = result.head.output_ids.tolist()
        return result


def decoded_tokens(store: Store, traces: TraceSet) -> dict[str, Sequence[int]]:
    """Output ids of every canary's first decode alone."""
    entries = [
        e
        for e in traces.entries
        if e.head and (e.key.probe, e.key.shape, e.key.repeat) == (Probe.DECODE, Shape.ALONE, 0)
    ]
    heads: Mapping[TraceKey, Any] = store.traces.heads(entries)
    return {key.canary: head.output_ids.tolist() for key, head in heads.items()}


def _attempted(action: Callable[[], T]) -> T | str:
    """The result, or the reason why one canary has none: a bad canary never loses its replay."""
    try:
        return action()
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - recorded as the canary's reason, the next one goes on
        return reason_of(error)


def reason_of(error: BaseException) -> str:
    """A sentence for the store: our own errors as they are, others with their type and place."""
    if isinstance(error, DriftpinError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{place}: {error}"
