"""Confirmation: a change is repeated in fresh processes before anybody is told. Knows no policy and no incident."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, replace

from driftpin.errors import ReplayInterruptedError, StoreError
from driftpin.settings.grade import Grade, grade_of
from driftpin.settings.policy import Policy, Severity
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import TraceKey
from driftpin.trace.traceset import Entry, TraceSet
from driftpin.verdict.kind import CHANGES
from driftpin.verdict.outcome import Outcome
from driftpin.verdict.verdict import Verdict
from driftpin.workflow.assess import assess
from driftpin.workflow.launch import Listener, launch
from driftpin.workflow.purpose import CONFIRM
from driftpin.workflow.references import of_baseline, of_replay

UNMEASURED = "a canary that had changed could not be measured again"

# What a repeat of a target that does not repeat every bit has to show again.
LOUD = frozenset({Outcome.FLIP, Outcome.SHIFTED, Outcome.CHECK_CHANGED, Outcome.BROKEN, Outcome.TIE_FLIP})

Signature = tuple[str | None, str | None, str | None]


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """Whether a change showed again; None with a `reason` where that could not be told, or was not asked."""

    reproduced: bool | None = None
    replays: tuple[str, ...] = ()  # ids of the repeats, in order
    reason: str | None = None


def worth_confirming(verdict: Verdict) -> bool:
    """A change that is not silent."""
    return verdict.kind in CHANGES and verdict.severity is not Severity.NONE


def confirm(
    store: Store,
    url: str,
    replay: Replay,
    times: int,
    listener: Listener,
    *,
    limit_seconds: float | None = None,
    stop: threading.Event | None = None,
) -> Confirmation:
    """Repeat a finished replay `times` times, weights read in full, until one of the repeats settles the question.

    Reproduced: every repeat has the traces of the canaries that differ from the baseline; on a target graded below
    bitwise, where none will, it comes to the same verdict on one of the same canaries. A repeat that failed settles
    nothing. Raises `ReplayInterruptedError` when `stop` ended a repeat.
    """
    changed, wanted = _Change.of(store, replay), _plan(store, replay)
    bitwise = grade_of(store.targets.get(replay.revision_id).operations) is Grade.BITWISE
    ids: list[str] = []
    for _ in range(times):
        done = launch(store, url, _order(store, replay, wanted), listener, limit_seconds, stop)
        ids.append(done.id)
        if done.status is ReplayStatus.INTERRUPTED:
            raise ReplayInterruptedError(f"The confirming replay {done.id} was interrupted.")
        if done.status is not ReplayStatus.FINISHED:
            return Confirmation(replays=tuple(ids), reason=f"the confirming replay {done.id} failed: {done.reason}")
        shown = changed.shown_by(done, store.replays.trace_set(done)) if bitwise else _seen_again(store, replay, done)
        if shown is not True:
            return Confirmation(reproduced=shown, replays=tuple(ids), reason=None if shown is False else UNMEASURED)
    return Confirmation(reproduced=True if ids else None, replays=tuple(ids))


def _seen_again(store: Store, replay: Replay, repeat: Replay) -> bool | None:
    """Whether a repeat is judged as the replay was, by the same quorum; None where a changed canary is missing."""
    first, again = (_judged(store, replay, one) for one in (replay, repeat))
    changed = {c.canary for c in first.canaries if c.outcomes & LOUD}
    if changed & {c.canary for c in again.canaries if Outcome.UNMEASURED in c.outcomes}:
        return None
    shown = {c.canary for c in again.canaries if c.outcomes & LOUD}
    return first.kind is again.kind and (not changed or bool(changed & shown))


def _judged(store: Store, replay: Replay, one: Replay) -> Verdict:
    baseline = store.replays.get(replay.id).baseline_id
    if baseline is None:
        raise StoreError(f"Replay {replay.id} was not judged against a baseline.")
    return assess(store, of_baseline(store, store.baselines.get(baseline)), of_replay(one), Policy()).verdict


@dataclass(frozen=True, kw_only=True)
class _Change:
    """What a repeat must show again."""

    traces: TraceSet
    model_digest: str | None
    keys: tuple[TraceKey, ...]  # executions that differ from the baseline's

    @classmethod
    def of(cls, store: Store, replay: Replay) -> _Change:
        traces, old = store.replays.trace_set(replay), _baseline(store, replay)
        before = {key: _signature(entry) for key, entry in old.by_key().items()} if old else {}
        measured = (e for e in traces.entries if not e.unmeasured)
        keys = tuple(e.key for e in measured if before.get(replace(e.key, repeat=0)) != _signature(e))
        return cls(traces=traces, model_digest=replay.model_digest, keys=keys)

    def shown_by(self, repeat: Replay, traces: TraceSet) -> bool | None:
        """None where one of the executions was not measured."""
        if not self.keys:  # nothing but the model's own digest changed
            return repeat.model_digest == self.model_digest
        first, again = self.traces.by_key(), traces.by_key()
        missing = [
            key for key in self.keys if not first[key].unmeasured and (key not in again or again[key].unmeasured)
        ]
        if missing:
            return None
        return all(key in again and _signature(first[key]) == _signature(again[key]) for key in self.keys)


def _signature(entry: Entry) -> Signature:
    """What decides an outcome; where bits part inside the model may differ."""
    return entry.input_digest, entry.head, entry.text


def _baseline(store: Store, replay: Replay) -> TraceSet | None:
    """Of the baseline that the replay was judged against, whichever is current by now."""
    judged = store.replays.get(replay.id).baseline_id
    return None if judged is None else store.traces.set(store.baselines.get(judged).trace_set)


def _plan(store: Store, replay: Replay) -> Plan:
    """The same plan with weights read in full; scores on the same tokens, even if somebody blesses meanwhile."""
    baseline = _baseline(store, replay)
    pinned = baseline.digest if baseline and replay.plan.score_on == BASELINE else replay.plan.score_on
    return replace(replay.plan, verify_weights=True, score_on=pinned)


def _order(store: Store, replay: Replay, plan: Plan) -> Replay:
    revision = store.targets.get(replay.revision_id)
    queued = store.replays.create(
        revision, replay.suite_digest, plan, host=socket.gethostname(), device=replay.device, purpose=CONFIRM
    )
    if queued is None:  # only a due time can be taken
        raise StoreError(f"The repeat of {replay.id} could not be ordered.")
    return queued
