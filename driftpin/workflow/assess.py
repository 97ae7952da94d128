"""Assessment: read two sides from the store, compare, judge. The shell around the two pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from driftpin.comparison.compare import compare
from driftpin.comparison.facts import Comparison
from driftpin.comparison.side import Side
from driftpin.environment.attribution import Attribution, attribute
from driftpin.environment.difference import Change, FactDifference, difference
from driftpin.environment.difference import equalities as agreement
from driftpin.environment.environment import Environment, Equality, Section
from driftpin.environment.layout import comparable
from driftpin.settings.policy import Policy, Severity
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay
from driftpin.suite.revision import suite_changes
from driftpin.verdict.evidence import ReferenceEvidence
from driftpin.verdict.floors import Floors, RepeatFloor
from driftpin.verdict.judge import Circumstances, judge, unblessed
from driftpin.verdict.verdict import Verdict
from driftpin.workflow.evidence import Native, gather
from driftpin.workflow.history import NOTHING, Since, since
from driftpin.workflow.plans import quorum_of
from driftpin.workflow.references import Reference, of_baseline, of_replay
from driftpin.workflow.sides import environment, sides_of

REPRODUCED = "reproduced"  # in a replay's summary: whether its change showed again when it was repeated


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A verdict with everything that it was drawn from."""

    verdict: Verdict
    candidate: Reference
    baseline: Reference | None = None
    comparison: Comparison | None = None
    equalities: dict[Section, Equality] | None = None
    differences: tuple[FactDifference, ...] = ()
    elsewhere: tuple[str, ...] = ()  # device classes that have a baseline while this one has none
    attribution: Attribution | None = None  # because of what; None where nothing differs
    floors: Floors | None = None  # the rounding yardstick of the baseline
    reference: ReferenceEvidence | None = None  # what the reference arm says; None where there is nothing to ask
    since: Since = NOTHING  # between which replays a change began
    reproduced: bool | None = None  # whether confirming replays showed the same; None: none ran to its end


def assess_replay(store: Store, replay: Replay, policy: Policy, reproduced: bool | None = None) -> Assessment:
    """A finished replay against the baseline that is current for its target and class of device."""
    candidate = of_replay(replay)
    baseline = _judging(store, replay, reproduced)
    if baseline is None:
        blessed = {b.device_class for b in store.baselines.list(replay.target)}
        elsewhere = tuple(sorted(c for c in blessed if store.baselines.current(replay.target, c)))
        return Assessment(verdict=unblessed(replay.device_class, elsewhere), candidate=candidate, elsewhere=elsewhere)
    found = assess(store, of_baseline(store, baseline), candidate, policy, reproduced)
    store.replays.set_verdict(replay.id, baseline.id, found.verdict.kind, summary(found))
    return found


def _judging(store: Store, replay: Replay, reproduced: bool | None) -> Baseline | None:
    """The current baseline; for a confirmed change the one that it was first judged against, whoever blessed since."""
    judged = store.replays.get(replay.id).baseline_id if reproduced is not None else None
    if judged is not None:
        return store.baselines.get(judged)
    return store.baselines.current(replay.target, replay.device_class or "unknown")


def assess(
    store: Store, baseline: Reference, candidate: Reference, policy: Policy, reproduced: bool | None = None
) -> Assessment:
    """Any reference against any other; a replay whose change was repeated is known to have been, and how it ended."""
    if reproduced is None and baseline.baseline is not None:
        reproduced = _confirmed(store, candidate.replay, baseline.baseline)
    sides = sides_of(
        store,
        (baseline.suite_digest, candidate.suite_digest),
        (baseline.trace_set, candidate.trace_set),
    )
    comparison = compare(*sides)
    old, new = comparable(environment(store, baseline.replay), environment(store, candidate.replay))
    equalities = agreement(old, new)
    differences = difference(old, new)
    blessed = _blessed(store, baseline, candidate, Native(comparison=comparison, baseline=sides[0], candidate=sides[1]))
    circumstances = replace(
        _circumstances(equalities, old, new, sides, reproduced),
        model_fact=_model_fact(differences),
        quorum=quorum_of(store.targets.get(candidate.replay.revision_id).operations),
        **blessed,
    )
    verdict = judge(comparison, circumstances, policy)
    blessed_replay = None if baseline.baseline is None else baseline.baseline.replay_id
    return Assessment(
        verdict=verdict,
        since=NOTHING if baseline.baseline is None else since(store, candidate.replay, verdict.kind, blessed_replay),
        candidate=candidate,
        baseline=baseline,
        comparison=comparison,
        equalities=equalities,
        differences=differences,
        attribution=attribute(differences, equalities, old, new) if comparison.changed or differences else None,
        reproduced=reproduced,
        floors=circumstances.floors,
        reference=circumstances.evidence,
    )


def _confirmed(store: Store, replay: Replay, baseline: Baseline) -> bool | None:
    """How the confirmation ended that was kept with the replay, if it was judged against this baseline."""
    kept = store.replays.get(replay.id)
    told = kept.summary.get(REPRODUCED) if kept.baseline_id == baseline.id else None
    return None if told is None else bool(told)


def _blessed(store: Store, baseline: Reference, candidate: Reference, native: Native) -> dict[str, Any]:
    """What only a baseline has: the floors and the reference arm."""
    if baseline.baseline is None:
        return {}
    bundle = store.baselines.bundle(baseline.baseline)
    floors, repeat = Floors.from_json(bundle.get("floors")), RepeatFloor.from_json(bundle.get("repeat_floor"))
    return {
        "floors": floors and floors.at_least(repeat),
        "repeat": repeat,
        "evidence": gather(store, baseline.baseline, candidate.replay, native) if native.comparison.changed else None,
    }


def summary(found: Assessment) -> dict[str, object]:
    """The few words kept on the replay's own row; nothing at all for a match, so that it stays small."""
    counts = {outcome.value: count for outcome, count in found.verdict.counts.items()}
    quiet = found.verdict.severity is Severity.NONE
    told: dict[str, object] = {} if found.reproduced is None else {REPRODUCED: found.reproduced}
    headline: dict[str, object] = {} if quiet else {"headline": found.verdict.headline}
    return {"counts": counts} | headline | told


def _circumstances(
    equalities: dict[Section, Equality],
    old: Environment,
    new: Environment,
    sides: tuple[Side, Side],
    reproduced: bool | None,
) -> Circumstances:
    return Circumstances(
        model=equalities[Section.MODEL],
        stack=equalities[Section.STACK],
        behaviour=equalities[Section.BEHAVIOUR],
        suite_changed=frozenset(suite_changes(sides[0].suite, sides[1].suite).changed),
        reproduced=reproduced,
        unknowns=(*_unknowns(old, new), *_unasked(*sides)),
    )


def _unasked(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """Probes of the baseline that the candidate did not run: nothing is said about what they would have shown."""
    before, after = ({e.key.probe for e in side.traces.entries} for side in (baseline, candidate))
    return tuple(f"The candidate ran no {probe}, which the baseline holds." for probe in sorted(before - after))


def _model_fact(differences: tuple[FactDifference, ...]) -> str | None:
    told = (f for f in differences if f.section is Section.MODEL and f.kind is not Change.UNDETERMINED)
    return next((fact.name for fact in told), None)


def _unknowns(old: Environment, new: Environment) -> tuple[str, ...]:
    """One sentence per fact that either side could not read."""
    reasons = {(s, n): why for env in (old, new) for s in Section for n, why in env.unknowns(s).items()}
    return tuple(f"{section.value} fact {name} is unknown: {why}" for (section, name), why in sorted(reasons.items()))
