"""Between which two replays a change began. Reads a target's past; judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.trace.probe import Arm
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.purpose import CONFIRM

LOOK_BACK = 500  # replays of one target
GOOD = frozenset({VerdictKind.MATCH, VerdictKind.NUMERIC})


@dataclass(frozen=True, kw_only=True)
class Since:
    """Ids of two replays: the newest good one, and the first that was not; None where there is none to name."""

    last_good: str | None = None
    first_bad: str | None = None


NOTHING = Since()


def since(store: Store, replay: Replay, kind: VerdictKind, blessed: str | None) -> Since:
    """For a verdict of `kind` on a replay; `blessed` is its baseline's own replay, good by a person's word."""
    if kind in GOOD:
        return NOTHING
    past = [r for r in _past(store, replay) if r.verdict]
    good = next((n for n, r in enumerate(past) if r.verdict in GOOD), len(past))
    bad = [replay, *past[:good]]
    return Since(last_good=past[good].id if good < len(past) else blessed, first_bad=bad[-1].id)


def _past(store: Store, replay: Replay) -> Sequence[Replay]:
    """Earlier native replays of the same target on the same class of device, newest first."""
    rows = store.replays.list(replay.target, limit=LOOK_BACK, status=ReplayStatus.FINISHED)
    return [r for r in rows if r.created_at < replay.created_at and _alike(r, replay)]


def _alike(one: Replay, other: Replay) -> bool:
    native = one.plan.arm is Arm.NATIVE and one.purpose != CONFIRM
    return native and one.device_class == other.device_class
