"""`compare`: two sides in, facts out. Pure: no clock, no database, no network, no opinion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from driftpin.comparison import tokens
from driftpin.comparison.depth import depth
from driftpin.comparison.deviation import deviation
from driftpin.comparison.facts import CheckChange, Comparison, RepeatMovement, TraceComparison, Unmeasured
from driftpin.comparison.reproduction import with_reproduction
from driftpin.comparison.routing import routing
from driftpin.comparison.side import Side
from driftpin.comparison.sinks import sketched_sinks
from driftpin.errors import DriftpinError
from driftpin.suite.canary import Canary
from driftpin.suite.checks import run_checks
from driftpin.suite.revision import suite_changes
from driftpin.trace.head import Head
from driftpin.trace.health import Ill, first_nonfinite_block
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry

VERSION = 3  # of the facts; cached comparisons carry it


class EmptyComparisonError(DriftpinError):
    """There is nothing to compare: the two replays share no measured canary."""


def needed(baseline: Side, candidate: Side) -> tuple[list[Entry], list[Entry]]:
    """Entries of each side whose blobs `compare` will ask for: those not equal by content."""
    if baseline.traces is candidate.traces:
        return [], []
    pairs = [(old, new) for old, new in _pairs(baseline, candidate) if old and new and old.blobs != new.blobs]
    repeats = {e.key: e for pair in _repeat_pairs(candidate) for e in pair}
    wanted = [new for _, new in pairs if new.head and new.key not in repeats]
    return [old for old, _ in pairs if old.head], [*wanted, *repeats.values()]


def compare(baseline: Side, candidate: Side) -> Comparison:
    """Facts about every execution of the candidate, held against the baseline's first repeat of the same kind."""
    changes = suite_changes(baseline.suite, candidate.suite)
    new, removed = set(changes.new), set(changes.removed)
    identical: list[TraceKey] = []
    changed: list[TraceComparison] = []
    unmeasured: list[Unmeasured] = []
    ills: dict[TraceKey, tuple[Ill, ...]] = {}
    scores: dict[TraceKey, tuple[Head, Head]] = {}
    for old, entry in _pairs(baseline, candidate):
        if entry is None or entry.unmeasured:
            key = entry.key if entry else old.key  # type: ignore[union-attr]
            if key.canary not in removed:
                unmeasured.append(Unmeasured(key=key, reason=_why_missing(entry)))
        elif entry.key.canary in new:
            continue
        elif old is None or old.unmeasured:
            unmeasured.append(Unmeasured(key=entry.key, reason=_why_no_baseline(old)))
        elif old is entry or (old.blobs == entry.blobs and old.input_digest == entry.input_digest):
            identical.append(entry.key)
            if entry.ills:
                ills[entry.key] = entry.ills
        else:
            changed.append(_compare_entries(baseline, candidate, old, entry))
            if entry.key.probe is Probe.SCORE:
                scores[entry.key] = baseline.head(old), candidate.head(entry)
    _refuse_empty(candidate, identical, changed, unmeasured)
    return Comparison(
        order=candidate.suite.ids + changes.removed,
        identical=tuple(identical),
        changed=tuple(with_reproduction(changed, scores)),
        unmeasured=tuple(unmeasured),
        new=changes.new,
        removed=changes.removed,
        repeats_differ=repeats_differ(candidate),
        repeat_movements=_repeat_movements(candidate),
        identical_ills=ills,
    )


def repeats_differ(side: Side) -> tuple[TraceKey, ...]:
    """Executions whose head is not the one of their own repeat 0."""
    return tuple(later.key for _, later in _repeat_pairs(side))


def _repeat_pairs(side: Side) -> list[tuple[Entry, Entry]]:
    """(repeat 0, later repeat) where their heads differ."""
    later = [e for e in side.traces.entries if e.key.repeat and e.head and e.key.shape is not Shape.PERTURBED]
    first = {e.key: e for e in side.traces.entries if e.key.repeat == 0} if later else {}
    pairs = [(first[_first_repeat(e.key)], e) for e in later if _first_repeat(e.key) in first]
    return [(a, b) for a, b in pairs if a.head and a.head != b.head]


def _repeat_movements(side: Side) -> tuple[RepeatMovement, ...]:
    """Empty where the heads were not read, as when a set is held against itself."""
    pairs = [(a, b) for a, b in _repeat_pairs(side) if a.head in side.heads and b.head in side.heads]
    return tuple(_repeat_movement(b.key, side.head(a), side.head(b)) for a, b in pairs)


def _repeat_movement(key: TraceKey, first: Head, later: Head) -> RepeatMovement:
    moved = tokens.movement(first, later)
    return RepeatMovement(
        key=key,
        tokens_equal=tokens.first_difference(first.output_ids, later.output_ids) is None,
        mean_abs_logprob=moved.mean_abs_logprob if moved else 0.0,
        max_pair=moved.max_pair if moved else None,
    )


def _first_repeat(key: TraceKey) -> TraceKey:
    return replace(key, repeat=0) if key.repeat else key


def _pairs(baseline: Side, candidate: Side) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Candidate entries with their baseline ones, in suite order, and the canaries that the candidate lost."""
    old = _Repeats(baseline)
    first = {e.key.canary: e for e in reversed(baseline.traces.entries)}
    by_canary: dict[str, list[Entry]] = {}
    for entry in candidate.traces.entries:
        if entry.key.shape is Shape.PERTURBED:
            continue  # the yardstick measures a baseline, it is not compared
        by_canary.setdefault(entry.key.canary, []).append(entry)
    for canary in candidate.suite.ids:
        for entry in by_canary.get(canary, ()):
            yield old.nearest(entry), entry
        if canary not in by_canary:
            yield first.get(canary) or _stand_in(canary), None


class _Repeats:
    """The baseline's executions, each with its repeats."""

    def __init__(self, side: Side) -> None:
        self._by_key = side.traces.by_key()

    def nearest(self, entry: Entry) -> Entry | None:
        """The baseline's first repeat, unless a later one has the same content, or at least the same text."""
        key = _first_repeat(entry.key)
        first = self._by_key.get(key)
        if first is None or first.blobs == entry.blobs:
            return first
        later = [e for e in self._later(key) if e.head]
        same = [e for e in later if e.blobs == entry.blobs] or [e for e in (first, *later) if e.text == entry.text]
        return same[0] if same else first

    def _later(self, key: TraceKey) -> Iterator[Entry]:
        for repeat in count(1):
            entry = self._by_key.get(replace(key, repeat=repeat))
            if entry is None:
                return
            yield entry


def _stand_in(canary: str) -> Entry:
    return Entry(key=TraceKey(canary=canary, probe=Probe.DECODE))


def _why_missing(entry: Entry | None) -> str:
    return (entry.unmeasured if entry else None) or "the replay recorded nothing for this canary"


def _why_no_baseline(old: Entry | None) -> str:
    if old is None:
        return "the baseline holds no execution of this kind"
    return f"the baseline could not measure it: {old.unmeasured}"


def _refuse_empty(
    candidate: Side,
    identical: list[TraceKey],
    changed: list[TraceComparison],
    unmeasured: list[Unmeasured],
) -> None:
    """New and removed canaries say nothing: a suite of only such ones would pass for a match."""
    if not (identical or changed or unmeasured):
        raise EmptyComparisonError(
            f"The comparison of suite {candidate.suite.name!r} is empty: the two replays share no canary.",
            remedy="Compare replays of one suite, or bless the new one.",
        )


def _compare_entries(baseline: Side, candidate: Side, old: Entry, new: Entry) -> TraceComparison:
    a, b = baseline.head(old), candidate.head(new)
    text_a, text_b = baseline.text(old), candidate.text(new)
    prompt = tokens.prompt_difference(a, b, text_a, text_b)
    mismatched = tokens.mismatched_declaration(a, b)
    common = TraceComparison(
        key=new.key,
        identical=tokens.identical(a, b) and prompt is None and not mismatched,
        tokens_equal=tokens.first_difference(a.output_ids, b.output_ids) is None,
        mismatched=mismatched,
        prompt=prompt,
        baseline_ills=old.ills,
        candidate_ills=new.ills,
        first_nonfinite=_nonfinite(candidate, new, b),
        tokens=len(b.output_ids),
    )
    if prompt or mismatched:
        return common
    return replace(
        _with_layers(common, baseline, candidate, old, new),
        divergence=tokens.divergence(a, b, text_a, text_b),
        movement=tokens.movement(a, b),
        checks=_checks(candidate.suite.canary(new.key.canary), new.key, text_a, text_b),
    )


def _with_layers(common: TraceComparison, baseline: Side, candidate: Side, old: Entry, new: Entry) -> TraceComparison:
    """What the two layer recordings add."""
    a, b = baseline.layers_of(old), candidate.layers_of(new)
    if a is None or b is None:
        lacking = "baseline" if a is None else "candidate"
        reason = (old if a is None else new).layers_absent or "none were recorded"
        return replace(common, depth_absent=f"the {lacking} has no layers: {reason}")
    until = _until(baseline.head(old), candidate.head(new))
    place, absent = depth(a, b, until)
    hidden = sketched_sinks(a)
    return replace(
        common,
        depth=None if common.identical and place and place.block is None else place,
        depth_absent=absent,
        deviation=deviation(a, b, hidden),
        sinks=int(hidden.sum()),
        routing=routing(a, b, until),
    )


def _until(a: Head, b: Head) -> int | None:
    """First sequence index whose context differs: behind the first token that differs."""
    at = tokens.first_difference(a.output_ids, b.output_ids)
    return None if at is None else len(a.prompt_ids) + at


def _nonfinite(side: Side, entry: Entry, head: Head) -> str | None:
    if Ill.NONFINITE not in entry.ills:
        return None
    layers = side.layers_of(entry)
    hit = first_nonfinite_block(layers) if layers is not None else None
    if hit:
        return f"non-finite from block {hit[0]} at position {hit[1]}"
    rows = (head.nonfinite > 0).nonzero()[0]
    return f"non-finite logits from output position {int(rows[0])}" if len(rows) else "non-finite"


def _checks(canary: Canary, key: TraceKey, old: TraceText, new: TraceText) -> tuple[CheckChange, ...]:
    """Checks re-run on both stored outputs; a score has no output of its own."""
    if key.probe is not Probe.DECODE:
        return ()
    pairs = zip(run_checks(canary.checks, old.output), run_checks(canary.checks, new.output), strict=True)
    return tuple(
        CheckChange(check=b.check.to_json(), baseline=a.passed, candidate=b.passed, detail=b.detail)
        for a, b in pairs
        if a.passed is not b.passed
    )
