"""The reference replay: the same suite in float32 and strict arithmetic, `score` only, beside a native replay.

Blessing runs one on the baseline's own tokens, and one runs beside a replay whose stack or model changed or that
drifted. Knows when and on which tokens; nothing of how an engine computes.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from driftpin.errors import ReplayInterruptedError, StoreError
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import ENDED, Replay, ReplayStatus
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, Probe
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.launch import Listener, launch
from driftpin.workflow.purpose import REFERENCE

if TYPE_CHECKING:
    from driftpin.workflow.assess import Assessment

NEVER = "never"  # of a target's operation `reference`
TURNED_OFF = 'the target says reference = "never"'
NOT_ORDERED = "the reference replay could not be ordered"

Run = Callable[[Replay], Replay]  # runs a queued replay to its end

# A verdict that says nothing about numbers, or on numbers that do not repeat, needs no arbiter.
ASKING = frozenset({VerdictKind.BROKEN, VerdictKind.DRIFT, VerdictKind.INCOMPLETE, VerdictKind.NUMERIC})


@dataclass(frozen=True, kw_only=True)
class Referred:
    """A reference replay that ran to its end, or why there is none."""

    replay: Replay | None = None
    absent: str | None = None


def wanted(operations: Mapping[str, Any]) -> bool:
    """Whether the target has a reference arm at all."""
    return bool(operations.get("reference", "auto") != NEVER)


def worth_referring(found: Assessment) -> bool:
    """On every movement: a changed stack or model made it, or nothing known did, which is stranger still.

    Only where the baseline has a reference to hold it against, and once.
    """
    reference = found.reference
    asked = reference is not None and reference.scored and reference.comparison is None
    return asked and bool(found.comparison and found.comparison.changed) and found.verdict.kind in ASKING


def refer(
    store: Store,
    url: str,
    replay: Replay,
    listener: Listener,
    *,
    limit_seconds: float | None = None,
    stop: threading.Event | None = None,
) -> Referred:
    """Run the reference replay beside a judged native one, on the tokens of the baseline that judged it.

    Raises `ReplayInterruptedError` when `stop` ended it.
    """
    judged = store.replays.get(replay.id).baseline_id
    if judged is None:
        return Referred(absent="the replay was not judged against a baseline")
    tokens = store.baselines.get(judged).trace_set
    return run_beside(store, replay, tokens, _launched(store, url, listener, limit_seconds, stop))


def _launched(
    store: Store, url: str, listener: Listener, limit_seconds: float | None, stop: threading.Event | None
) -> Run:
    def run(queued: Replay) -> Replay:
        done = launch(store, url, queued, listener, limit_seconds, stop)
        if done.status is ReplayStatus.INTERRUPTED:
            raise ReplayInterruptedError(f"The reference replay {done.id} was interrupted.")
        return done

    return run


def run_beside(store: Store, replay: Replay, tokens: str, run: Run, yardstick: int = 0) -> Referred:
    """Order and run; `tokens` is the trace set (digest) whose decodes are scored. One that ran already is reused."""
    if not wanted(store.targets.get(replay.revision_id).operations):
        return Referred(absent=TURNED_OFF)
    plan = reference_plan(replay.plan, tokens, yardstick)
    past = (r for r in store.replays.beside(replay) if r.plan == plan and r.status is ReplayStatus.FINISHED)
    return ended(next(past, None) or run(_ordered(store, replay, plan)))


def reference_plan(native: Plan, tokens: str, yardstick: int = 0) -> Plan:
    """Scores alone, once, of the canaries that the native plan ran."""
    return Plan(probes=(Probe.SCORE,), arm=Arm.REFERENCE, score_on=tokens, only=native.only, yardstick=yardstick)


def ended(replay: Replay) -> Referred:
    """What an ended reference replay comes to."""
    if replay.status is not ReplayStatus.FINISHED:
        # Its reason may quote outputs of a suite whose text is hidden, so it stays on the replay's own row.
        return Referred(absent=f"the reference replay {replay.id} {replay.status} (`driftpin replays` says why)")
    return Referred(replay=replay)


def _ordered(store: Store, replay: Replay, plan: Plan) -> Replay:
    queued = store.replays.create(
        store.targets.get(replay.revision_id),
        replay.suite_digest,
        plan,
        host=socket.gethostname(),
        device=replay.device,
        purpose=REFERENCE,
        beside=replay.id,
    )
    if queued is None:  # only a due time can be taken
        raise StoreError(f"{NOT_ORDERED} beside {replay.id}.")
    return queued


def beside(store: Store, replay: Replay, baseline: Baseline) -> Referred:
    """The newest reference replay of a native one on that baseline's tokens, or why there is none."""
    if not wanted(store.targets.get(replay.revision_id).operations):
        return Referred(absent=TURNED_OFF)
    ran = [r for r in store.replays.beside(replay) if r.plan.score_on == baseline.trace_set and r.status in ENDED]
    if not ran:
        return Referred()
    return ended(next((r for r in ran if r.status is ReplayStatus.FINISHED), ran[0]))
