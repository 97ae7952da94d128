"""References as people write them: `TARGET@baseline`, `TARGET@last`, `TARGET@2` (a baseline's number), `r-9f31`."""

from __future__ import annotations

from dataclasses import dataclass

from driftpin.errors import NotFoundError
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay
from driftpin.trace.probe import Arm
from driftpin.workflow.purpose import CONFIRM


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A set of traces with the replay that recorded them; `baseline` where it was reached as one."""

    label: str
    replay: Replay
    trace_set: str
    suite_digest: str
    baseline: Baseline | None = None


def resolve(store: Store, text: str) -> Reference:
    """The reference's traces; `NotFoundError` with the next step for whatever is not there."""
    if not text.strip():
        raise NotFoundError("The reference is empty.", remedy=_known(store))
    if "@" not in text and text in store.targets.names():
        raise NotFoundError(f"{text} is a target.", remedy=f"Write {text}@last, {text}@baseline or a replay's id.")
    if "@" not in text:
        return of_replay(store.replays.find(text), text)
    target, _, which = text.rpartition("@")
    if target not in store.targets.names():
        raise NotFoundError(f"There is no target {target!r} in the store.", remedy=_known(store))
    if which == "last":
        return _last(store, target, text)
    return of_baseline(store, _baseline(store, target, which), text)


def of_replay(replay: Replay, label: str | None = None) -> Reference:
    """A replay's own traces; `NotFoundError` while it has none."""
    if replay.trace_set is None:
        why = replay.reason or "nothing was recorded yet"
        raise NotFoundError(f"Replay {replay.id} ({replay.status}) has no traces: {why}.", remedy="Run another one.")
    return Reference(
        label=label or replay.id, replay=replay, trace_set=replay.trace_set, suite_digest=replay.suite_digest
    )


def of_baseline(store: Store, baseline: Baseline, label: str | None = None) -> Reference:
    """A baseline's traces, which may come from more than one replay."""
    return Reference(
        label=label or f"{baseline.target}@{baseline.number}",
        replay=store.replays.get(baseline.replay_id),
        trace_set=baseline.trace_set,
        suite_digest=baseline.suite_digest,
        baseline=baseline,
    )


def _last(store: Store, target: str, text: str) -> Reference:
    replay = store.replays.last(target, arm=Arm.NATIVE, skipping=CONFIRM)
    if replay is None:
        raise NotFoundError(f"Target {target!r} has no finished replay.", remedy=f"Run `driftpin replay {target}`.")
    return of_replay(replay, text)


def _baseline(store: Store, target: str, which: str) -> Baseline:
    blessed = store.baselines.list(target)
    if which == "baseline":
        current = {b.device_class: store.baselines.current(target, b.device_class) for b in blessed}
        found = [b for b in current.values() if b]
    else:
        found = [b for b in blessed if str(b.number) == which]
    if not found:
        raise NotFoundError(
            f"Target {target!r} has no baseline {which!r}.",
            remedy=f"`driftpin baseline list {target}` shows them; `driftpin baseline bless {target}` makes one.",
        )
    if len(found) > 1:
        classes = ", ".join(sorted(b.device_class for b in found))
        raise NotFoundError(
            f"{target}@{which} exists for several device classes: {classes}.", remedy="Name a replay id instead."
        )
    return found[0]


def _known(store: Store) -> str:
    names = ", ".join(store.targets.names()) or "none yet"
    return f"Known targets: {names}. `driftpin replay TARGET` adds one."
