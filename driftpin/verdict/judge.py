"""`judge`: a comparison, its circumstances and a policy in, a verdict out. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

from driftpin.comparison.facts import Comparison, RepeatMovement
from driftpin.counting import canaries_counted, counted
from driftpin.environment.environment import Equality
from driftpin.settings.policy import Policy, Severity
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.crowd import condemned, crowds
from driftpin.verdict.diagnosis import ChangeClass, Diagnosis, diagnose
from driftpin.verdict.evidence import ReferenceEvidence, farther_canaries, without
from driftpin.verdict.floors import SHIFT, Floors, RepeatFloor
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import CanaryVerdict, Outcome, canary_verdicts, tie_limit
from driftpin.verdict.place import Place, localise
from driftpin.verdict.place_by_deviation import CALM_BLOCKS, ROUNDING
from driftpin.verdict.quorum import Quorum, voted
from driftpin.verdict.shift import shift_of
from driftpin.verdict.texts import Texts, texts_of
from driftpin.verdict.verdict import FirstDivergence, Verdict

DRIFTED = frozenset({Outcome.FLIP, Outcome.SHIFTED, Outcome.CHECK_CHANGED})
SUSPECT_DEVICE = "The microprobes computed something else although model and stack did not change: suspect the device."
NO_YARDSTICK = "The baseline has no rounding yardstick: a flip cannot be told from a tie."
UNDETERMINED_STACK = "Whether the stack is the same is undetermined; it was judged as the same, the stricter way."
ONCE = Quorum()
DIAGNOSED = frozenset(
    {VerdictKind.BROKEN, VerdictKind.DRIFT, VerdictKind.INCOMPLETE, VerdictKind.NUMERIC}
)  # verdicts on numbers that could be compared, and that repeat themselves
MOVED = frozenset({Outcome.NUMERIC, Outcome.TIE_FLIP})


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What is known beside the traces. An undetermined stack is judged as the same one: never silently."""

    model: Equality
    stack: Equality
    behaviour: Equality
    suite_changed: frozenset[str] = frozenset()  # canaries that the suite's own revision redefined
    model_fact: str | None = None  # the likeliest of the model's differing facts
    floors: Floors | None = None  # of the baseline; None where it was blessed without
    repeat: RepeatFloor | None = None  # how far the target moved by itself at blessing
    evidence: ReferenceEvidence | None = None  # of the reference arm; None where the baseline has none
    quorum: Quorum = ONCE
    reproduced: bool | None = None  # a confirming run showed the same change; None: not asked yet
    unknowns: tuple[str, ...] = ()  # sentences about facts that could not be read


def judge(comparison: Comparison, circumstances: Circumstances, policy: Policy) -> Verdict:
    """The first row of the verdict table that holds, with its evidence."""
    circumstances = _known(circumstances)
    floors, repeat, evidence = circumstances.floors, circumstances.repeat, circumstances.evidence
    vote = partial(voted, quorum=circumstances.quorum)
    watched = _watched(comparison, circumstances.suite_changed)
    told = () if circumstances.quorum.voting else crowds(watched, floors)  # of repeats, which k of n decide about
    canaries = canary_verdicts(comparison, floors, condemned(told) | farther_canaries(evidence), vote)
    kind = _kind(comparison, circumstances, canaries)
    texts = texts_of(watched, floors)
    diagnosis = diagnose(watched, evidence, canaries, told) if kind in DIAGNOSED else None
    return Verdict(
        kind=kind,
        severity=_severity(kind, canaries, circumstances, policy),
        headline=_headline(kind, comparison, circumstances, canaries, texts),
        canaries=canaries,
        first=_first(comparison, floors),
        place=_place(comparison, circumstances, diagnosis),
        diagnosis=diagnosis,
        texts=texts,
        crowds=told,
        shift=shift_of(comparison, floors, None if repeat is None else repeat.logprob),
        remarks=_remarks(kind, circumstances),
        unseen=_unseen(comparison, circumstances, diagnosis),
    )


def _known(circumstances: Circumstances) -> Circumstances:
    """One value for each floor (never below the target's own repeats), and evidence on what the suite still asks."""
    floors = circumstances.floors and circumstances.floors.at_least(circumstances.repeat)
    evidence = without(circumstances.evidence, circumstances.suite_changed)
    restless = circumstances.repeat is not None and circumstances.repeat.moved
    still = circumstances.stack is not Equality.DIFFERENT and not restless
    return replace(
        circumstances,
        floors=floors,
        evidence=evidence and replace(evidence, native=floors, model=circumstances.model, still=still),
    )


def _watched(comparison: Comparison, redefined: frozenset[str]) -> Comparison:
    """The comparison without canaries that the suite itself redefined."""
    if not redefined:
        return comparison
    return replace(comparison, changed=tuple(t for t in comparison.changed if t.key.canary not in redefined))


def _place(comparison: Comparison, circumstances: Circumstances, diagnosis: Diagnosis | None) -> Place | None:
    evidence = circumstances.evidence or ReferenceEvidence()
    found = localise(
        comparison,
        circumstances.stack,
        circumstances.floors,
        reference=evidence.comparison,
        reference_floors=evidence.floors,
        reference_stack=None if evidence.comparison is None else evidence.stack,
    )
    rounding = diagnosis is None or diagnosis.word is ChangeClass.ROUNDING
    if found is not None and not found.found and not rounding:  # each block is calm, yet the word is not rounding
        return replace(found, sentence=found.sentence.replace(ROUNDING, CALM_BLOCKS))
    return found


def unblessed(device_class: str | None = None, elsewhere: tuple[str, ...] = ()) -> Verdict:
    """The verdict on a replay that has nothing to be held against; a ticket where only its device class has nothing."""
    headline = "unblessed: there is no baseline for this target on this class of device"
    if elsewhere:
        headline = f"unblessed: it ran on {device_class}, its baselines are for {', '.join(elsewhere)}"
    severity = Severity.TICKET if elsewhere else Severity.INFO
    return Verdict(kind=VerdictKind.UNBLESSED, severity=severity, headline=headline)


def _kind(comparison: Comparison, circumstances: Circumstances, canaries: tuple[CanaryVerdict, ...]) -> VerdictKind:
    outcomes = frozenset().union(*(c.outcomes for c in canaries)) if canaries else frozenset()
    rows = {
        VerdictKind.INCOMPARABLE: _incomparable(comparison, circumstances),
        VerdictKind.INVALID: Outcome.INVALID in outcomes,
        VerdictKind.BROKEN: Outcome.BROKEN in outcomes,
        VerdictKind.UNSTABLE: bool(unstable_repeats(comparison, circumstances)) or circumstances.reproduced is False,
        VerdictKind.DRIFT: bool(outcomes & DRIFTED) or circumstances.model is Equality.DIFFERENT,
        VerdictKind.INCOMPLETE: _unmeasured(comparison, circumstances) or _asked_otherwise(canaries, circumstances),
        VerdictKind.NUMERIC: bool(outcomes & MOVED),
    }
    return next((kind for kind, holds in rows.items() if holds), VerdictKind.MATCH)


def _incomparable(comparison: Comparison, circumstances: Circumstances) -> bool:
    """Every execution present on both sides was asked or declared differently: nothing of the baseline was measured.

    What the suite's author redefined is left out, unless that is everything.
    """
    if comparison.identical or not comparison.changed:
        return False
    asked = [t for t in comparison.changed if t.key.canary not in circumstances.suite_changed]
    return all(t.prompt or t.mismatched for t in asked or comparison.changed)


def unstable_repeats(comparison: Comparison, circumstances: Circumstances) -> tuple[TraceKey, ...]:
    """Repeats that exceed the repeat floor: on a bitwise target any that differ, below it those that moved farther."""
    floor = circumstances.repeat
    if floor is None or not circumstances.quorum.voting:
        return comparison.repeats_differ
    told = {m.key: m for m in comparison.repeat_movements}
    parted = Counter(_execution(m.key) for m in told.values() if not m.tokens_equal)
    apart = {e for e, count in parted.items() if count >= circumstances.quorum.k and not floor.tokens_differ}
    floors = circumstances.floors
    return tuple(
        key
        for key in comparison.repeats_differ
        if key not in told or _execution(key) in apart or exceeds(told[key], floor, floors)
    )


def _execution(key: TraceKey) -> TraceKey:
    return replace(key, repeat=0)


def exceeds(moved: RepeatMovement, floor: RepeatFloor, floors: Floors | None = None) -> bool:
    """Beyond twice what the repeats at blessing moved by; rounding alone, where it was measured, is never too far."""
    size = SHIFT * max(floor.logprob, floor.by_canary.get(moved.key.canary, 0.0))
    pair = SHIFT * max(floor.pair, floors.pair if floors else 0.0)
    size = max(size, floors.shift_limit(moved.key.canary)) if floors else size
    return moved.mean_abs_logprob > size or (moved.max_pair or 0.0) > pair


def _unmeasured(comparison: Comparison, circumstances: Circumstances) -> bool:
    """An execution is missing, or was declared otherwise by no doing of the suite's author."""
    declared = {t.key.canary for t in comparison.changed if t.mismatched}
    return bool(comparison.unmeasured) or bool(declared - circumstances.suite_changed)


def _asked_otherwise(canaries: tuple[CanaryVerdict, ...], circumstances: Circumstances) -> bool:
    """A prompt changed although the suite did not: that canary was not measured against its baseline."""
    changed = {c.canary for c in canaries if Outcome.INPUT_CHANGED in c.outcomes}
    return bool(changed - circumstances.suite_changed)


def _severity(
    kind: VerdictKind, canaries: tuple[CanaryVerdict, ...], circumstances: Circumstances, policy: Policy
) -> Severity:
    same_stack = circumstances.stack is not Equality.DIFFERENT
    names: list[str] = [kind.value]
    if kind is VerdictKind.DRIFT and any(Outcome.CHECK_CHANGED in c.outcomes for c in canaries):
        names.append(Outcome.CHECK_CHANGED.value)
    return max((policy.severity(name, same_stack=same_stack) for name in names), key=lambda s: s.rank)


def _first(comparison: Comparison, floors: Floors | None) -> FirstDivergence | None:
    order = {canary: n for n, canary in enumerate(comparison.order)}
    parted = [t for t in comparison.changed if t.divergence and not t.prompt and not t.mismatched]
    if not parted:
        return None
    trace = min(parted, key=lambda t: (order[t.key.canary], t.key.probe is not Probe.DECODE, t.key))
    assert trace.divergence is not None  # noqa: S101 - filtered above
    key, at = trace.key, trace.divergence
    limit = None if floors is None else tie_limit(at, floors)
    return FirstDivergence(canary=key.canary, probe=key.probe, shape=key.shape, divergence=at, limit=limit)


def _headline(
    kind: VerdictKind,
    comparison: Comparison,
    circumstances: Circumstances,
    canaries: tuple[CanaryVerdict, ...],
    texts: Texts | None,
) -> str:
    outcomes = _outcomes(canaries)
    said = {
        VerdictKind.INCOMPARABLE: "incomparable: every canary was asked or declared differently",
        VerdictKind.UNSTABLE: f"unstable: {_unstable(comparison, circumstances)}",
        VerdictKind.DRIFT: f"drift: {_drift(circumstances)}{outcomes}",
        VerdictKind.NUMERIC: f"numeric: {outcomes}{_texts(texts)}",
        VerdictKind.MATCH: f"match: {_matching(canaries)}",
    }
    return said.get(kind, f"{kind.value}: {outcomes}")


def _texts(texts: Texts | None) -> str:
    """Users read texts: that some changed stands in the headline, whatever the numbers say of it."""
    if texts is None or not texts.changed:
        return ""
    alone = "" if texts.by_rounding is None else f", where rounding alone changes {texts.by_rounding:.2g} on average"
    return f"; {counted(texts.changed, 'text', 'texts')} changed{alone}"


def _outcomes(canaries: tuple[CanaryVerdict, ...]) -> str:
    counts: dict[Outcome, int] = {}
    for canary in canaries:
        counts[canary.outcome] = counts.get(canary.outcome, 0) + 1
    listed = [f"{counts[o]} {o.value}" for o in Outcome if o in counts]
    return f"{', '.join(listed)} of {canaries_counted(len(canaries))}"


def _matching(canaries: tuple[CanaryVerdict, ...]) -> str:
    if all(canary.outcome is Outcome.IDENTICAL for canary in canaries):
        return f"{canaries_counted(len(canaries))} identical"
    return _outcomes(canaries)  # new, removed or redefined ones are not called identical


def _drift(circumstances: Circumstances) -> str:
    """A changed model digest, told by the fact that most likely did it."""
    if circumstances.model is not Equality.DIFFERENT:
        return ""
    return f"the model's {circumstances.model_fact} changed; " if circumstances.model_fact else "the model changed; "


def _unstable(comparison: Comparison, circumstances: Circumstances) -> str:
    if repeats := unstable_repeats(comparison, circumstances):
        return f"{counted(len(repeats), 'repeat differs', 'repeats differ')} within one replay"
    return "the change did not reproduce when it was repeated"


def _remarks(kind: VerdictKind, circumstances: Circumstances) -> tuple[str, ...]:
    sentences = []
    unmoved = Equality.DIFFERENT not in (circumstances.model, circumstances.stack)
    same = kind is not VerdictKind.INCOMPARABLE  # two arms' microprobes differ by their precision
    if unmoved and same and circumstances.behaviour is Equality.DIFFERENT:
        sentences.append(SUSPECT_DEVICE)
    if circumstances.stack is Equality.UNDETERMINED:
        sentences.append(UNDETERMINED_STACK)
    if circumstances.reproduced:
        sentences.append("The change was repeated in fresh processes and showed again.")
    return tuple(sentences)


def _unseen(comparison: Comparison, circumstances: Circumstances, diagnosis: Diagnosis | None) -> tuple[str, ...]:
    sentences = list(circumstances.unknowns)
    declared = {t.key.canary for t in comparison.changed if t.mismatched} - circumstances.suite_changed
    missing = {m.key.canary for m in comparison.unmeasured} | declared
    if missing:
        sentences.append(f"Not measured: {', '.join(sorted(missing))}.")
    if redefined := circumstances.suite_changed & {t.key.canary for t in comparison.changed}:
        named = ", ".join(sorted(redefined))
        sentences.append(f"Redefined by the suite, not watched until blessed (`bless --only new`): {named}.")
    if any(t.depth_absent for t in comparison.changed):
        sentences.append("Some executions have no layer recording: their place is not seen.")
    if circumstances.floors is None and any(not t.identical for t in comparison.changed):
        sentences.append(NO_YARDSTICK)
    if diagnosis is not None and diagnosis.absent:
        sentences.append(f"Whether this is rounding or a defect: {diagnosis.absent.rstrip('.')}.")
    if circumstances.evidence is not None and circumstances.evidence.missing:
        sentences.append(f"The reference arm did not measure: {', '.join(circumstances.evidence.missing)}.")
    return tuple(sentences)
