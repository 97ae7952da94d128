"""Blessing: a person accepts what a replay recorded. Nothing blesses itself, and nothing here changes a baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from driftpin.comparison.compare import repeats_differ
from driftpin.comparison.side import Side
from driftpin.counting import counted
from driftpin.environment.environment import Equality, Section, equality
from driftpin.errors import BlessError
from driftpin.settings.grade import Grade, grade_of
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.revision import suite_changes
from driftpin.trace.health import Ill
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, Probe, Shape
from driftpin.trace.traceset import KIND, Entry, TraceSet
from driftpin.verdict.floors import RepeatFloor
from driftpin.verdict.repeat import Pair, pairs_to_ask, repeat_floor
from driftpin.workflow.bundled import bundled_reference
from driftpin.workflow.refer import Referred
from driftpin.workflow.references import of_replay
from driftpin.workflow.yardstick import measured_floors

LEAST_REPEATS = 3
SEEDS = 4  # of the rounding yardstick
BUNDLE = "driftpin.baseline/1"
NO_REFERENCE = Referred(absent="the baseline was blessed without a reference replay")
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
    store: Store,
    replay: Replay,
    who: str,
    why: str,
    *,
    only_new: bool = False,
    accept: Iterable[Ill] = (),
    reference: Referred = NO_REFERENCE,
) -> Baseline:
    """Make a replay the baseline of its target and device class; with `only_new` its canaries join the current one.

    `reference` is the reference replay that scored this replay's tokens. Raises `BlessError` for a replay that did
    not finish, has fewer than three repeats, does not repeat itself as its grade demands, lacks a canary, or holds an
    ill trace that is not in `accept`.
    """
    traces = refuse_unfit(store, replay, accept)
    device_class = replay.device_class or "unknown"
    merged = _successor(store, replay, traces, device_class) if only_new else traces
    digest = store.blobs.put(merged.to_bytes(), KIND) if only_new else None
    store.blobs.put(ordinary(merged).to_bytes(), KIND)
    floors = measured_floors(store, merged)
    current = store.baselines.current(replay.target, device_class) if only_new else None
    bundle: dict[str, Any] = {
        "schema": BUNDLE,
        "trace_set": merged.digest,
        "environment": replay.environment,
        "suite": replay.suite_digest,
        "repeats": replay.plan.repeats,
        "shapes": [shape.value for shape in replay.plan.shapes],
        "grade": grade_of(store.targets.get(replay.revision_id).operations),
        "floors": None if floors is None else floors.to_json(),
        "repeat_floor": measured_repeats(store, merged, replay.plan.repeats).to_json(),
        "reference": bundled_reference(store, replay, merged, reference, current),
    }
    return store.baselines.put(replay.target, device_class, replay.id, bundle, who, why, trace_set=digest)


def measured_repeats(store: Store, traces: TraceSet, repeats: int) -> RepeatFloor:
    """How far the blessing's repeats and shapes moved, read only where their heads differ by content."""
    by_key = {e.key: e for e in traces.entries if e.head and e.key.shape is not Shape.PERTURBED}
    asked = pairs_to_ask(list(by_key), {key: e.head or "" for key, e in by_key.items()})
    pairs = [Pair(key=k, first=store.traces.head(by_key[a]), other=store.traces.head(by_key[k])) for a, k in asked]
    return repeat_floor(pairs, list(by_key), repeats)


def ordinary(traces: TraceSet) -> TraceSet:
    """What a replay that reproduces this one once, alone, will have; stored here, it adds no row there."""
    once = (e for e in traces.entries if e.key.repeat == 0 and e.key.shape is Shape.ALONE)
    return TraceSet.of(once)


def refuse_unfit(store: Store, replay: Replay, accept: Iterable[Ill] = ()) -> TraceSet:
    """The traces of a replay that is fit to be blessed; raises `BlessError` as `bless` would, before anything runs."""
    traces = store.traces.set(of_replay(replay).trace_set)
    if replay.status is not ReplayStatus.FINISHED:
        raise BlessError(f"Replay {replay.id} is {replay.status}: {replay.reason or 'it has not ended'}.", remedy=AGAIN)
    if replay.plan.arm is Arm.REFERENCE:
        raise BlessError(f"Replay {replay.id} is of the reference arm.", remedy=f"Bless {replay.beside} instead.")
    if replay.plan.repeats < LEAST_REPEATS:
        raise BlessError(
            f"Replay {replay.id} ran every canary {replay.plan.repeats} time(s); a baseline needs {LEAST_REPEATS}.",
            remedy=f"Run `driftpin baseline bless {replay.target}` without a replay, which makes a fit one.",
        )
    _refuse_gaps(replay, traces.entries)
    suite = store.suites.get(replay.suite_digest).suite
    _refuse_unsteady(store, replay, Side(suite=suite, traces=traces))
    _refuse_ill(replay, traces.entries, frozenset(accept))
    return traces


def _refuse_unsteady(store: Store, replay: Replay, side: Side) -> None:
    """A bitwise target repeats every bit, one graded `tokens` every token; one graded `unstable` promises nothing."""
    grade = grade_of(store.targets.get(replay.revision_id).operations)
    differing, by_key = repeats_differ(side), side.traces.by_key()
    if grade is Grade.TOKENS:
        differing = tuple(k for k in differing if by_key[k].text != by_key[replace(k, repeat=0)].text)
    if differing and grade is not Grade.UNSTABLE:
        apart = counted(len(differing), "execution differs", "executions differ")
        raise BlessError(
            f"Replay {replay.id} does not repeat itself: {apart}, first {differing[0]}.",
            remedy="Find what is not deterministic (`driftpin env show`), or give the target a lower `grade`.",
        )


def _refuse_gaps(replay: Replay, entries: Iterable[Entry]) -> None:
    gaps = [e for e in entries if e.unmeasured]
    if gaps:
        raise BlessError(
            f"Replay {replay.id} could not measure {gaps[0].key}: {gaps[0].unmeasured}.",
            remedy=f"Mend or remove the canary ({counted(len(gaps), 'execution')} missing), then bless again.",
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
