"""Rounding, a defect of the native path, or a change of model or input: the word, and what it rests on. Pure.

Only the reference arm can tell them apart, so without it none of the words is used and the reason is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from driftpin.comparison.facts import Comparison, TraceComparison
from driftpin.counting import canaries_counted
from driftpin.environment.environment import Equality
from driftpin.trace.health import Ill
from driftpin.verdict.crowd import Crowd, far_flips
from driftpin.verdict.evidence import ReferenceEvidence, SignTest, sign_tests
from driftpin.verdict.floors import SHIFT
from driftpin.verdict.outcome import CanaryVerdict, Outcome
from driftpin.verdict.untold import why_unpaired, why_untold

ONE = 2.5  # shift limits (five yardsticks) that a single canary may reach before it speaks for itself
NO_REFERENCE = "the baseline holds no reference scores"
NOT_RUN = "the reference arm has not run beside this replay"


class ChangeClass(StrEnum):
    """What kind of change moved the numbers."""

    ROUNDING = "rounding"  # the reference stayed, and the native arm is no farther from it than it was
    NATIVE_PATH_DEFECT = "native_path_defect"  # the reference stayed, and the native arm went away from it
    MODEL_OR_INPUT_CHANGE = "model_or_input_change"  # the reference moved too, or what it was asked did


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The word with its evidence, or why there is none."""

    word: ChangeClass | None
    sentence: str  # complete in itself
    absent: str | None = None  # why there is no word
    tests: tuple[SignTest, ...] = ()
    ratio: float | None = None  # of the deciding test: candidate's distance to the reference over the baseline's
    farther: int | None = None
    asked: int | None = None
    p_value: float | None = None
    reference_shift: float | None = None  # mean |Δ log-prob| between the two reference runs, in nats
    reference_limit: float | None = None  # what it may reach: two of the reference's own yardsticks
    label: str | None = None  # what the reference is, where it is not the weights as they are


def diagnose(
    comparison: Comparison,
    evidence: ReferenceEvidence | None,
    canaries: Sequence[CanaryVerdict],
    told: Sequence[Crowd] = (),
) -> Diagnosis | None:
    """None where nothing moved; `told` are the counts of decodes that `canaries` were judged by."""
    if not any(t.movement or t.divergence or t.prompt for t in comparison.changed):
        return None
    if evidence is None:
        return _without(NO_REFERENCE, ())
    tests = sign_tests(evidence)
    if evidence.comparison is None:
        return _without(evidence.absent or NOT_RUN, tests)
    if unpaired := why_unpaired(comparison, evidence):
        return _without(unpaired, tests)
    found = _word(comparison, evidence, canaries, tests, told)
    return _without(found, tests) if isinstance(found, str) else _told(*found, evidence, tests)


def _word(
    comparison: Comparison,
    evidence: ReferenceEvidence,
    canaries: Sequence[CanaryVerdict],
    tests: Sequence[SignTest],
    told: Sequence[Crowd],
) -> tuple[ChangeClass, str] | str:
    """The word and what it rests on; or, as a string, why there is none."""
    far = far_flips(comparison, evidence.native, canaries)
    if changed := _asked_otherwise(comparison) or _reference_moved(evidence) or _only_chosen(comparison, evidence):
        return ChangeClass.MODEL_OR_INPUT_CHANGE, changed
    if defect := _farther(tests) or _crowd(told) or _shifted(canaries) or _far_flip(far, evidence):
        return ChangeClass.NATIVE_PATH_DEFECT, f"the reference stayed calm, {defect}"
    untold = why_untold(comparison, evidence, tests, told, far)
    return untold or (ChangeClass.ROUNDING, _calm_sentence(evidence, tests))


def _farther(tests: Sequence[SignTest]) -> str | None:
    return next((f"and {test.words}" for test in tests if test.significant), None)


def _crowd(told: Sequence[Crowd]) -> str | None:
    return next((f"while {crowd.words}" for crowd in told if crowd.significant), None)


def _shifted(canaries: Sequence[CanaryVerdict]) -> str | None:
    count = sum(bool(c.outcomes & {Outcome.SHIFTED, Outcome.BROKEN}) for c in canaries)
    return f"while {canaries_counted(count)} moved more than rounding does" if count else None


def _far_flip(far: Sequence[TraceComparison], evidence: ReferenceEvidence) -> str | None:
    """A token that parted by more than twice what rounding moves a pair by, or to one that was not even kept.

    Not behind a router that chose other experts: there a jump is as wide as experts differ, and only a count tells.
    """
    plain = next((trace for trace in far if not _perhaps_rerouted(trace, evidence)), None)
    return None if plain is None else f"while {plain.key.canary} parts by far more than rounding moves two tokens"


def _perhaps_rerouted(trace: TraceComparison, evidence: ReferenceEvidence) -> bool:
    """A router chose otherwise; or nobody recorded it, in a model whose pairs jump under rounding alone."""
    if trace.routing is not None:
        return True
    jumps = evidence.native is not None and bool(evidence.native.far_parting)
    return trace.depth_absent is not None and jumps


def _asked_otherwise(comparison: Comparison) -> str | None:
    asked = [t for t in comparison.changed if t.prompt is not None]
    if not asked or len(asked) < sum(1 for t in comparison.changed if not t.mismatched):
        return None
    return "the model was asked something else: the prompts differ"


def _reference_moved(evidence: ReferenceEvidence) -> str | None:
    """By bits on the baseline's stack, where nothing may move at all; elsewhere beyond twice its own yardstick."""
    assert evidence.comparison is not None  # noqa: S101 - the caller asked
    changed = [t for t in evidence.comparison.changed if not t.identical and not t.mismatched]
    if any(t.prompt for t in changed):
        return "the reference was asked something else too: the prompts differ"
    if any(Ill.NONFINITE in t.candidate_ills for t in changed):
        return "the reference arm puts out numbers that are not finite"
    if not changed:
        return None
    where = "on the same stack" if evidence.stack is Equality.SAME else _beyond(evidence)
    return where and f"the reference moved too, {where}: {_size(evidence)}"


def _beyond(evidence: ReferenceEvidence) -> str | None:
    """In what respect the reference moved more than rounding moves it."""
    shift, limit = reference_shift(evidence), reference_limit(evidence)
    if limit is None:
        return "and it has no yardstick to say by how much it may"
    if shift is not None and shift > limit:
        return "beyond its own rounding"
    alone = _alone(evidence)
    return alone and f"in {alone} far beyond its own rounding"


def _alone(evidence: ReferenceEvidence) -> str | None:
    """A canary that moved far although the mean over all did not: a fault on a path that few texts take."""
    if evidence.comparison is None or evidence.floors is None:
        return None
    limits = evidence.floors
    moved = ((t.key.canary, t.movement.mean_abs_logprob) for t in evidence.comparison.changed if t.movement)
    return next((canary for canary, size in moved if size > ONE * limits.shift_limit(canary)), None)


def _only_chosen(comparison: Comparison, evidence: ReferenceEvidence) -> str | None:
    """Tokens part although no raw logit moved in any bit, or to one that is no arg-max while the model section changed.

    Where that section did not change, a processor that always acted may choose beside the arg-max on both sides.
    """
    moved = [t for t in comparison.changed if not t.identical and not t.prompt and not t.mismatched]
    if moved and all(_chosen_otherwise(t) for t in moved):
        return "every raw logit agrees up to the divergence: what chooses the token changed, not the model's numbers"
    parted = [t for t in moved if t.divergence and None not in (t.divergence.baseline_id, t.divergence.candidate_id)]
    beside = next((t for t in parted if t.divergence and not t.divergence.both_top), None)
    if beside is not None and evidence.model is Equality.DIFFERENT:
        return f"{beside.key.canary} parts to a token that is no arg-max of its raw logits: what chooses changed"
    return None


def _chosen_otherwise(trace: TraceComparison) -> bool:
    return trace.divergence is not None and trace.movement is not None and trace.movement.moved == 0


def reference_shift(evidence: ReferenceEvidence) -> float | None:
    """Mean |Δ log-prob| between the two reference runs over canaries, identical ones as zero; in nats."""
    found = evidence.comparison
    if found is None:
        return None
    moved = [t.movement.mean_abs_logprob for t in found.changed if t.movement]
    count = len(found.identical) + len(moved)
    return sum(moved) / count if count else None


def reference_limit(evidence: ReferenceEvidence) -> float | None:
    """Twice the reference arm's own rounding yardstick; None where it was blessed without."""
    return None if evidence.floors is None else SHIFT * evidence.floors.logprob


def _size(evidence: ReferenceEvidence) -> str:
    shift, limit = reference_shift(evidence), reference_limit(evidence)
    size = "by an unknown amount" if shift is None else f"mean |Δ log-prob| {shift:.2g}"
    return size if limit is None else f"{size}, where rounding reaches {limit:.2g}"


def _calm_sentence(evidence: ReferenceEvidence, tests: Sequence[SignTest]) -> str:
    changed = "the model changed, by no more than rounding shows: " if evidence.model is Equality.DIFFERENT else ""
    calm = f"{changed}the reference stayed calm ({_size(evidence)})"
    told = "; ".join(test.words for test in tests)
    if not any(test.resolved for test in tests):
        return f"{calm}, and the native arm moved within rounding; the reference is no more exact than this target"
    weak = all(test.powerless for test in tests)
    return f"{calm}, and {told}" + ("; that many canaries could not have shown more" if weak else "")


def _without(why: str, tests: tuple[SignTest, ...]) -> Diagnosis:
    said = next((f"; {test.words}" for test in tests if test.significant), "")
    return _with_test(
        Diagnosis(word=None, sentence=f"rounding or defect cannot be told: {why}{said}", absent=why, tests=tests)
    )


def _told(word: ChangeClass, why: str, evidence: ReferenceEvidence, tests: tuple[SignTest, ...]) -> Diagnosis:
    label = f" (reference: {evidence.label})" if evidence.label else ""
    return _with_test(
        Diagnosis(
            word=word,
            sentence=f"{word.value.replace('_', ' ')}: {why}{label}",
            tests=tests,
            reference_shift=reference_shift(evidence),
            reference_limit=reference_limit(evidence),
            label=evidence.label,
        )
    )


def _with_test(told: Diagnosis) -> Diagnosis:
    """The numbers of the test that says most: a significant one, else the one with the largest ratio."""
    if not told.tests:
        return told
    best = max(told.tests, key=lambda test: (test.significant, test.ratio))
    return replace(told, ratio=best.ratio, farther=best.farther, asked=best.asked, p_value=best.p_value)
