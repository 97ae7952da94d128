"""Blessing: a person accepts what a replay recorded. Nothing blesses itself, and nothing here changes a baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from driftpin.comparison.compare import repeats_differ
from driftpin.comparison.side import Side
from driftpin.environment.environment import Equality, Section, equality
from driftpin.errors import BlessError
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.revision import suite_changes
from driftpin.trace.health import Ill
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, Probe, Shape
from driftpin.trace.traceset import KIND, Entry, TraceSet
from driftpin.verdict.floors import Floors, Perturbed, floors_of
from driftpin.workflow.references import of_replay

LEAST_REPEATS = 3
SEEDS = 4  # of the rounding yardstick
BUNDLE = "driftpin.baseline/1"
AGAIN = "Bless a finished one."


def blessing_plan(shapes: Iterable[Shape], repeats: int = LEAST_REPEATS, only: Iterable[str] = ()) -> Plan:
    """Decode and score of one replay's own tokens, in every declared shape, repeated; weights are read in full."""
    return Plan(
        probes=(Probe.DECODE, Probe.SCORE),
        shapes=tuple(shapes),
        repeats=repeats,
        arm=Arm.NATIVE,
        score_on=None,
        observer_check=True,
        verify_weights=True,
        yardstick=SEEDS,
        only=tuple(only),
    )


def bless(
    store: Store, replay: Replay, who: str, why: str, *, only_new: bool = False, accept: Iterable[Ill] = ()
) -> Baseline:
    """Make a replay the baseline of its target and device class; with `only_new` its canaries join the current one.

    Raises `BlessError` for a replay that did not finish, has fewer than three repeats, does not repeat itself, lacks
    a canary, or holds an ill trace that is not in `accept`.
    """
    traces = store.traces.set(of_replay(replay).trace_set)
    _refuse_unfit(store, replay, traces, frozenset(accept))
    device_class = replay.device_class or "unknown"
    merged = _successor(store, replay, traces, device_class) if only_new else traces
    digest = store.blobs.put(merged.to_bytes(), KIND) if only_new else None
    store.blobs.put(ordinary(merged).to_bytes(), KIND)
    floors = measured_floors(store, merged)
    bundle: dict[str, Any] = {
        "schema": BUNDLE,
        "trace_set": merged.digest,
        "environment": replay.environment,
        "suite": replay.suite_digest,
        "repeats": replay.plan.repeats,
        "shapes": [shape.value for shape in replay.plan.shapes],
        "floors": None if floors is None else floors.to_json(),
    }
    return store.baselines.put(replay.target, device_class, replay.id, bundle, who, why, trace_set=digest)


def measured_floors(store: Store, traces: TraceSet) -> Floors | None:
    """The rounding yardstick of a blessing's perturbed scores; None where it has none."""
    by_key = traces.by_key()
    other = [e for e in traces.entries if e.key.shape is Shape.PERTURBED and e.head]
    pairs = [(by_key[replace(e.key, shape=Shape.ALONE, repeat=0)], e) for e in other]
    perturbed = [
        Perturbed(
            canary=new.key.canary,
            head=store.traces.head(old),
            other=store.traces.head(new),
            layers=store.traces.layers(old),
            other_layers=store.traces.layers(new),
        )
        for old, new in pairs
    ]
    return floors_of(perturbed, len({e.key.repeat for e in other}))


def ordinary(traces: TraceSet) -> TraceSet:
    """What a replay that reproduces this one once, alone, will have; stored here, it adds no row there."""
    once = (e for e in traces.entries if e.key.repeat == 0 and e.key.shape is Shape.ALONE)
    return TraceSet.of(once)


def _refuse_unfit(store: Store, replay: Replay, traces: TraceSet, accept: frozenset[Ill]) -> None:
    if replay.status is not ReplayStatus.FINISHED:
        raise BlessError(f"Replay {replay.id} is {replay.status}: {replay.reason or 'it has not ended'}.", remedy=AGAIN)
    if replay.plan.repeats < LEAST_REPEATS:
        raise BlessError(
            f"Replay {replay.id} ran every canary {replay.plan.repeats} time(s); a baseline needs {LEAST_REPEATS}.",
            remedy=f"Run `driftpin baseline bless {replay.target}` without a replay, which makes a fit one.",
        )
    _refuse_gaps(replay, traces.entries)
    suite = store.suites.get(replay.suite_digest).suite
    if differing := repeats_differ(Side(suite=suite, traces=traces)):
        raise BlessError(
            f"Replay {replay.id} does not repeat itself: {len(differing)} executions differ, first {differing[0]}.",
            remedy="Find what is not deterministic (`driftpin env show`), then bless again.",
        )
    _refuse_ill(replay, traces.entries, accept)


def _refuse_gaps(replay: Replay, entries: Iterable[Entry]) -> None:
    gaps = [e for e in entries if e.unmeasured]
    if gaps:
        raise BlessError(
            f"Replay {replay.id} could not measure {gaps[0].key}: {gaps[0].unmeasured}.",
            remedy=f"Mend or remove the canary ({len(gaps)} executions are missing), then bless again.",
        )


def _refuse_ill(replay: Replay, entries: Iterable[Entry], accept: frozenset[Ill]) -> None:
    ill = [(e, i) for e in entries for i in e.ills if i not in accept]
    if ill:
        entry, what = ill[0]
        advice = {
            Ill.NONFINITE: "A model that emits NaN or infinity cannot be watched: repair its weights or precision.",
            Ill.NOT_GREEDY: "Remove the processor that changes the choice, or ask for it by name in `generation`.",
            Ill.ONE_TOKEN: f"Change the canary, or accept it: `baseline bless {replay.target} --accept one_token`.",
        }
        raise BlessError(f"Replay {replay.id} has {what.value} in {entry.key}.", remedy=advice[what])


def _successor(store: Store, replay: Replay, traces: TraceSet, device_class: str) -> TraceSet:
    """The current baseline's traces plus those of new and redefined canaries; nothing else blessed is replaced."""
    current = store.baselines.current(replay.target, device_class)
    if current is None:
        raise BlessError("There is no baseline to add new canaries to.", remedy="Bless without `--only new` first.")
    _refuse_other_environment(store, current, replay)
    suite = store.suites.get(replay.suite_digest).suite
    changes = suite_changes(store.suites.get(current.suite_digest).suite, suite)
    added = {*changes.new, *changes.changed}
    if not added:
        raise BlessError("The suite has no canary that the baseline lacks.", remedy="Nothing needs blessing.")
    kept = set(suite.ids) - added
    old = (entry for entry in store.traces.set(current.trace_set).entries if entry.key.canary in kept)
    return TraceSet.of([*old, *(entry for entry in traces.entries if entry.key.canary in added)])


def _refuse_other_environment(store: Store, current: Baseline, replay: Replay) -> None:
    """Traces of one baseline come from one environment, or its comparisons would mean nothing."""
    old = store.environments.get(current.environment)
    new = store.environments.get(replay.environment or "")
    for section in (Section.MODEL, Section.STACK):
        if equality(old.section(section), new.section(section)) is Equality.DIFFERENT:
            raise BlessError(
                f"The {section.value} changed since baseline {current.number}; new canaries cannot join it.",
                remedy="Bless the whole suite (without `--only new`) once the change is accepted.",
            )
