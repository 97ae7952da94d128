"""What can be said of one canary, and the rules that say it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from driftpin.comparison.facts import Comparison, Divergence, TraceComparison, Unmeasured
from driftpin.trace.health import Ill
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.floors import Floors


class Outcome(StrEnum):
    """The opinion on one canary; members stand in the order in which they are said when several hold."""

    INPUT_CHANGED = "input_changed"  # prompt ids or rendered text differ: the model is not blamed
    INVALID = "invalid"  # the candidate was not greedy
    BROKEN = "broken"  # a non-finite number, or one token for ever
    CHECK_CHANGED = "check_changed"  # a check answers differently on the two stored outputs
    FLIP = "flip"  # tokens diverge
    SHIFTED = "shifted"  # tokens agree or only tie, but movement exceeds the floor
    UNMEASURED = "unmeasured"  # nothing can be said, with the reason
    TIE_FLIP = "tie_flip"  # tokens diverge at a tie that rounding explains
    NUMERIC = "numeric"  # tokens agree, the numbers moved within the floor
    NEW = "new"  # only the candidate's suite has it
    REMOVED = "removed"  # only the baseline's suite has it
    IDENTICAL = "identical"  # equal prompt ids, output ids and logit digests


REASON_HIDDEN = "the reason is kept in the store, since the suite's text is hidden"
POSITIONS = 8  # of a decode, before its mean is held against the yardstick
NAMED = frozenset(  # a canary that drifts needs no second reason
    {Outcome.FLIP, Outcome.SHIFTED, Outcome.BROKEN, Outcome.INVALID}
)
RANK = {outcome: rank for rank, outcome in enumerate(Outcome)}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One outcome with its evidence in a sentence."""

    outcome: Outcome
    why: str
    key: TraceKey | None = None
    hidden: str | None = None  # instead of `why` where texts are hidden; None: it quotes no prompt and no output

    def told(self, *, text: bool) -> str:
        """The sentence, without quotations where text is hidden."""
        return self.why if text or self.hidden is None else self.hidden

    def reworded(self, template: str) -> Finding:
        """With `template` about both sentences; its `{}` stands for them."""
        before, after = template.split("{}")
        hidden = None if self.hidden is None else f"{before}{self.hidden}{after}"
        return replace(self, why=f"{before}{self.why}{after}", hidden=hidden)


@dataclass(frozen=True, kw_only=True)
class CanaryVerdict:
    """Everything said of one canary, the first finding being the one that names it."""

    canary: str
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> Outcome:
        """The outcome that names the canary."""
        return self.findings[0].outcome

    @property
    def outcomes(self) -> frozenset[Outcome]:
        """Every outcome that holds."""
        return frozenset(finding.outcome for finding in self.findings)


Vote = Callable[[Sequence[Finding]], list[Finding]]


def canary_verdicts(
    comparison: Comparison,
    floors: Floors | None = None,
    condemned: Mapping[str, Finding] | None = None,
    vote: Vote = list,
) -> tuple[CanaryVerdict, ...]:
    """One verdict per canary of either suite, in suite order.

    `condemned` holds what a rule over all canaries found of some; `vote` may turn the other findings into weaker ones.
    """
    found: dict[str, list[Finding]] = {canary: [] for canary in comparison.order}
    for canary, finding in _findings(comparison, floors):
        found[canary].append(finding)
    found = {canary: vote(findings) for canary, findings in found.items()}
    for canary, finding in (condemned or {}).items():  # judged over canaries already: nothing to vote about
        if not {f.outcome for f in found[canary]} & NAMED:
            found[canary].append(finding)
    return tuple(
        CanaryVerdict(canary=canary, findings=tuple(sorted(findings, key=lambda f: RANK[f.outcome])))
        for canary, findings in found.items()
        if findings
    )


def _findings(comparison: Comparison, floors: Floors | None) -> Iterable[tuple[str, Finding]]:
    for canary in comparison.new:
        yield canary, Finding(outcome=Outcome.NEW, why="not in the baseline's suite; bless it to watch it")
    for canary in comparison.removed:
        yield canary, Finding(outcome=Outcome.REMOVED, why="no longer in the suite")
    for missing in comparison.unmeasured:
        yield missing.key.canary, _unmeasured(missing)
    for key in comparison.identical:
        yield from ((key.canary, finding) for finding in _of_identical(key, comparison.identical_ills.get(key, ())))
    scored = _scored(comparison)
    for trace in comparison.changed:
        decoded = trace.key.canary not in scored
        yield from ((trace.key.canary, finding) for finding in trace_findings(trace, floors, decoded=decoded))


def _scored(comparison: Comparison) -> frozenset[str]:
    """Canaries of which some score could be compared."""
    keys = (*comparison.identical, *(t.key for t in comparison.changed if not t.mismatched))
    return frozenset(key.canary for key in keys if key.probe is Probe.SCORE)


def _unmeasured(missing: Unmeasured) -> Finding:
    return Finding(outcome=Outcome.UNMEASURED, why=missing.reason, key=missing.key, hidden=REASON_HIDDEN)


def _of_identical(key: TraceKey, ills: tuple[Ill, ...]) -> Iterable[Finding]:
    if Ill.NONFINITE in ills:
        yield Finding(outcome=Outcome.BROKEN, why="non-finite numbers, as in the baseline", key=key)
    if Ill.NOT_GREEDY in ills:
        yield Finding(outcome=Outcome.INVALID, why="not greedy, as in the baseline", key=key)
    yield Finding(outcome=Outcome.IDENTICAL, why="equal in every bit that decides", key=key)


def trace_findings(trace: TraceComparison, floors: Floors | None = None, *, decoded: bool = False) -> Iterable[Finding]:
    """The outcomes of one execution whose blobs differ; `decoded`: its canary has no score to judge movement by."""
    if trace.mismatched:
        yield Finding(outcome=Outcome.UNMEASURED, why="not comparable: " + "; ".join(trace.mismatched), key=trace.key)
        return
    if trace.prompt:
        said = {"why": _input_sentence(trace), "hidden": _input_sentence(trace, quoted=False)}
        yield Finding(outcome=Outcome.INPUT_CHANGED, key=trace.key, **said)
        return
    if Ill.NOT_GREEDY in trace.candidate_ills:
        why = "an emitted token was not the arg-max of its processed logits"
        yield Finding(outcome=Outcome.INVALID, why=why, key=trace.key)
    if broken := _broken(trace):
        yield Finding(outcome=Outcome.BROKEN, why=broken, key=trace.key)
    yield from _checks(trace)
    yield from _numbers(trace, floors, decoded)


def _broken(trace: TraceComparison) -> str | None:
    if Ill.NONFINITE in trace.candidate_ills:
        return trace.first_nonfinite or "non-finite numbers"
    if Ill.ONE_TOKEN in trace.candidate_ills and Ill.ONE_TOKEN not in trace.baseline_ills:
        return f"one token, {trace.tokens} times"
    return None


def _checks(trace: TraceComparison) -> Iterable[Finding]:
    for change in trace.checks:
        kind = next(iter(change.check))
        said = f"check {kind}: {_answer(change.baseline)} before, {_answer(change.candidate)} now"
        why = f"{said} ({change.detail})"
        yield Finding(outcome=Outcome.CHECK_CHANGED, why=why, key=trace.key, hidden=said)


def _answer(passed: bool | None) -> str:
    return {True: "passed", False: "failed", None: "not evaluable"}[passed]


def _numbers(trace: TraceComparison, floors: Floors | None, decoded: bool) -> Iterable[Finding]:
    at = trace.divergence
    if at is not None:
        outcome = Outcome.TIE_FLIP if floors is not None and is_tie(at, floors) else Outcome.FLIP
        said = {"why": _flip_sentence(trace, floors), "hidden": _flip_sentence(trace, floors, quoted=False)}
        yield Finding(outcome=outcome, key=trace.key, **said)
    elif trace.identical:
        yield Finding(outcome=Outcome.IDENTICAL, why="equal in every bit that decides", key=trace.key)
    elif floors is not None and is_shifted(trace, floors, decoded=decoded):
        yield Finding(outcome=Outcome.SHIFTED, why=_shift_sentence(trace, floors), key=trace.key)
    else:
        yield Finding(outcome=Outcome.NUMERIC, why=_numeric_sentence(trace), key=trace.key)


def is_tie(at: Divergence, floors: Floors) -> bool:
    """Both tokens were arg-maxes of their own raw logits, and D is within F, never below one ulp of the logit."""
    return at.both_top and at.movement is not None and at.movement <= tie_limit(at, floors)


def tie_limit(at: Divergence, floors: Floors) -> float:
    """F: the yardstick's 99.9 % quantile of pair movement, at least one unit in the last place at that magnitude."""
    return max(floors.pair, at.ulp or 0.0)


def is_shifted(trace: TraceComparison, floors: Floors, *, decoded: bool = False) -> bool:
    """Mean |Δ log-prob| of a score above twice the yardstick.

    A decode is asked only where its canary has no score, and over enough positions: a mean of two or three of them
    reaches twice the yardstick by chance.
    """
    moved = trace.movement
    if moved is None or (trace.key.probe is Probe.DECODE and not (decoded and moved.positions >= POSITIONS)):
        return False
    return moved.mean_abs_logprob > floors.shift_limit(trace.key.canary)


def _shift_sentence(trace: TraceComparison, floors: Floors) -> str:
    size = trace.movement.mean_abs_logprob if trace.movement else 0.0
    limit = floors.shift_limit(trace.key.canary)
    return f"tokens agree, but mean |Δ log-prob| is {size:.2g}, above {limit:.2g} (2 x the rounding yardstick)"


def _flip_sentence(trace: TraceComparison, floors: Floors | None, *, quoted: bool = True) -> str:
    at = trace.divergence
    assert at is not None  # noqa: S101 - the caller asked
    moved = f"D = {at.movement:.3g}" if at.movement is not None else f"D unknown ({at.missing})"
    if floors is not None and at.movement is not None:
        moved += f" against F = {tie_limit(at, floors):.3g}" + ("" if at.both_top else ", and not both were arg-maxes")
    margin = "" if at.baseline_margin is None else f", the baseline's margin there was {at.baseline_margin:.3g}"
    quote = f": {at.baseline_text!r} became {at.candidate_text!r}" if quoted else ""
    return f"tokens part at output {at.position}{quote}; {moved}{margin}{_routed(trace)}"


def _routed(trace: TraceComparison) -> str:
    """Other experts before the divergence move logits by a jump, so they are said beside D."""
    if trace.routing is None:
        return ""
    first = trace.routing.first
    return f"; a router chose other experts before it, first {first.module} at position {first.position}"


def _numeric_sentence(trace: TraceComparison) -> str:
    moved = trace.movement
    if moved is None:
        return "tokens agree; no position to compare numbers at"
    return (
        f"tokens agree; logits moved at {moved.moved} of {moved.positions} positions, "
        f"mean |Δ log-prob| {moved.mean_abs_logprob:.2g}, largest {moved.max_abs_logprob:.2g}"
    )


def _input_sentence(trace: TraceComparison, *, quoted: bool = True) -> str:
    prompt = trace.prompt
    assert prompt is not None  # noqa: S101 - the caller asked
    if prompt.index is None:
        return "the rendered prompt text differs although its token ids agree"
    quote = f": {list(prompt.baseline_ids)} became {list(prompt.candidate_ids)}" if quoted else ""
    return (
        f"prompt ids changed at index {prompt.index}{quote} ({prompt.lengths[0]} ids before, {prompt.lengths[1]} now)"
    )
