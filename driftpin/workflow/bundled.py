"""The reference arm's part of a baseline's bundle: written at blessing, read at every comparison. Never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driftpin.canonical import known_parts
from driftpin.environment.environment import Environment, Equality, Section, equality
from driftpin.environment.reference import reference_label
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay
from driftpin.trace.traceset import KIND, TraceSet
from driftpin.verdict.floors import Floors
from driftpin.workflow.refer import TURNED_OFF, Referred
from driftpin.workflow.sides import environment
from driftpin.workflow.yardstick import measured_floors

WEIGHTS = ("weights.",)  # facts that must be the same in both arms
BEFORE = "the baseline was blessed before reference scores were kept"
AT_BLESSING = 'the baseline was blessed with reference = "never"; bless again to have one'
OTHER_WEIGHTS = "the weights changed between the native and the reference replay"


@dataclass(frozen=True, kw_only=True)
class BundledReference:
    """The reference scores of a baseline, or why it has none."""

    replay: str | None = None
    trace_set: str | None = None
    floors: Floors | None = None
    label: str | None = None
    absent: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> BundledReference:
        """As read from a bundle; None stands for one that is older than reference scores."""
        if value is None:
            return cls(absent=BEFORE)
        return cls(**known_parts(cls, {**value, "floors": Floors.from_json(value.get("floors"))}))


def bundled_reference(
    store: Store, native: Replay, traces: TraceSet, referred: Referred, current: Baseline | None
) -> dict[str, Any]:
    """What the bundle of a new baseline says; `current` is the one that `--only new` adds canaries to."""
    made = referred.replay
    if made is None:
        return {"absent": AT_BLESSING if referred.absent == TURNED_OFF else referred.absent or BEFORE}
    old, new = environment(store, native), environment(store, made)
    if not _same_weights(old, new):
        return {"absent": OTHER_WEIGHTS}
    scores = store.replays.trace_set(made)
    if gaps := [e for e in scores.entries if e.unmeasured]:
        return {"absent": f"the reference arm could not measure {gaps[0].key}: {gaps[0].unmeasured}"}
    if current is not None:
        merged = _merged(store, current, scores, traces, new)
        if isinstance(merged, str):
            return {"absent": merged}
        scores = merged
    floors = measured_floors(store, scores)
    return {
        "replay": made.id,
        "trace_set": store.blobs.put(scores.to_bytes(), KIND),
        "floors": None if floors is None else floors.to_json(),
        "label": reference_label(new),
    }


def _merged(store: Store, current: Baseline, scores: TraceSet, traces: TraceSet, now: Environment) -> TraceSet | str:
    """The current baseline's reference scores of canaries kept, and the new ones; or why they do not go together."""
    before = BundledReference.from_json(store.baselines.bundle(current).get("reference"))
    if before.trace_set is None or before.replay is None:
        return before.absent or BEFORE
    old = environment(store, store.replays.get(before.replay))
    if any(equality(old.section(s), now.section(s)) is Equality.DIFFERENT for s in (Section.MODEL, Section.STACK)):
        return "the reference arm's model or stack changed since the current baseline was blessed"
    held = store.traces.set(current.trace_set).by_key()
    kept = {e.key.canary for e in traces.entries if held.get(e.key) == e}  # the others are new or redefined
    old_scores = (e for e in store.traces.set(before.trace_set).entries if e.key.canary in kept)
    return TraceSet.of([*old_scores, *(e for e in scores.entries if e.key.canary not in kept)])


def _same_weights(a: Environment, b: Environment) -> bool:
    names = {n for side in (a, b) for n in side.model if n.startswith(WEIGHTS)}
    return all(a.model.get(name) == b.model.get(name) for name in names)
