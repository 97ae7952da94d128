"""Gathering what the reference arm says of a native comparison: stored scores, distances, the second comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from driftpin.comparison.compare import EmptyComparisonError, compare
from driftpin.comparison.distance import Distance, distance
from driftpin.comparison.facts import Comparison, TraceComparison
from driftpin.comparison.side import Side
from driftpin.environment.environment import Section, equality
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay
from driftpin.trace.head import Head
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.verdict.diagnosis import NOT_RUN
from driftpin.verdict.evidence import ReferenceEvidence
from driftpin.workflow.bundled import BundledReference
from driftpin.workflow.refer import Referred, beside
from driftpin.workflow.sides import environment, sides_of


@dataclass(frozen=True, kw_only=True)
class Native:
    """The native comparison and the two sides that it was made of."""

    comparison: Comparison
    baseline: Side
    candidate: Side


def gather(store: Store, baseline: Baseline, replay: Replay, native: Native) -> ReferenceEvidence:
    """Always a value; what it lacks, it says in `absent`."""
    kept = BundledReference.from_json(store.baselines.bundle(baseline).get("reference"))
    if kept.trace_set is None or kept.replay is None:
        return ReferenceEvidence(absent=kept.absent)
    evidence = ReferenceEvidence(
        scored=True, distances=_distances(store, kept.trace_set, native), floors=kept.floors, label=kept.label
    )
    return _with_candidate(store, evidence, baseline, replay, kept)


def _with_candidate(
    store: Store, evidence: ReferenceEvidence, baseline: Baseline, replay: Replay, kept: BundledReference
) -> ReferenceEvidence:
    ran: Referred = beside(store, replay, baseline)
    if ran.replay is None or kept.replay is None or kept.trace_set is None:
        return replace(evidence, absent=ran.absent or NOT_RUN)
    old, new = store.replays.get(kept.replay), ran.replay
    suites = baseline.suite_digest, replay.suite_digest
    sets = kept.trace_set, new.trace_set or ""
    try:
        comparison = compare(*sides_of(store, suites, sets))
    except EmptyComparisonError as error:
        return replace(evidence, absent=str(error))
    missing = tuple(sorted({m.key.canary for m in comparison.unmeasured} | _mismatched(comparison)))
    if not (comparison.identical or comparison.changed):
        return replace(evidence, absent=f"the reference replay {new.id} measured no canary")
    before, after = environment(store, old), environment(store, new)
    stack = equality(before.section(Section.STACK), after.section(Section.STACK))
    return replace(evidence, comparison=comparison, stack=stack, replay=new.id, missing=missing)


def _mismatched(comparison: Comparison) -> set[str]:
    """Canaries whose two reference scores were forced on different tokens: no evidence, in either direction."""
    return {t.key.canary for t in comparison.changed if t.mismatched}


def _distances(store: Store, reference: str, native: Native) -> tuple[Distance, ...]:
    """Of every changed native execution alone that still answers the same prompt."""
    changed = [t for t in native.comparison.changed if _measurable(t)]
    scores = _reference_heads(store, reference, {t.key.canary for t in changed})
    found = (_distance(t.key, scores, native) for t in changed)
    return tuple(d for d in found if d is not None)


def _measurable(trace: TraceComparison) -> bool:
    return trace.key.shape is Shape.ALONE and trace.prompt is None and not trace.mismatched


def _reference_heads(store: Store, reference: str, canaries: Iterable[str]) -> Mapping[str, Head]:
    entries = store.traces.set(reference).by_key()
    keys = (TraceKey(canary=canary, probe=Probe.SCORE) for canary in canaries)
    wanted = [entries[key] for key in keys if key in entries and entries[key].head]
    return {key.canary: head for key, head in store.traces.heads(wanted).items()}


def _distance(key: TraceKey, scores: Mapping[str, Head], native: Native) -> Distance | None:
    first = TraceKey(canary=key.canary, probe=key.probe, shape=key.shape)
    old, new = native.baseline.traces.by_key().get(first), native.candidate.traces.by_key().get(key)
    if key.canary not in scores or old is None or new is None or old.head not in native.baseline.heads:
        return None
    return distance(key, scores[key.canary], native.baseline.head(old), native.candidate.head(new))
