"""The reference rule: sign test, class words, and what is said without a reference. Values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from store_samples import head as sample_head
from verdict_samples import (
    FLOORS,
    NATIVE,
    REFERENCE_FLOORS,
    calm,
    comparison,
    diagnosed,
    far,
    key,
    moved,
    parted,
    trace,
    word,
)

from driftpin.comparison.distance import distance
from driftpin.comparison.facts import (
    Comparison,
    Divergence,
    PromptDifference,
)
from driftpin.environment.environment import Equality
from driftpin.settings.policy import Policy
from driftpin.trace.health import Ill
from driftpin.trace.probe import Probe
from driftpin.verdict.diagnosis import NO_REFERENCE, NOT_RUN, ChangeClass, diagnose
from driftpin.verdict.evidence import ReferenceEvidence, farther_canaries, sign_test, sign_tests
from driftpin.verdict.judge import Circumstances, judge
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import Outcome, canary_verdicts
from driftpin.verdict.quorum import Quorum


def test_eleven_of_twelve_farther_by_half_is_significant_and_seven_are_not() -> None:
    eleven, seven = (sign_test(far(n, 12, 1.5), Probe.SCORE, REFERENCE_FLOORS) for n in (11, 7))
    assert eleven is not None
    assert seven is not None
    assert (eleven.significant, seven.significant) == (True, False)
    assert eleven.ratio == pytest.approx((11 * 1.5 + 0.95) / 12)


def test_a_thousand_canaries_a_hair_farther_are_rounding() -> None:
    test = sign_test(far(1000, 1000, 1.02), Probe.SCORE, REFERENCE_FLOORS)
    assert test is not None
    assert test.p_value < 1e-9
    assert not test.significant


def test_two_probes_that_moved_share_the_risk_of_being_wrong() -> None:
    """p of 10 of 11 is 0.0059: enough where only decodes moved, not where scores were asked as well."""
    decodes = far(10, 11, 3.0, Probe.DECODE)
    assert word(calm(distances=decodes)) is ChangeClass.NATIVE_PATH_DEFECT
    assert word(calm(distances=(*far(6, 12, 1.05), *decodes))) is None


def test_a_reference_no_more_precise_than_the_target_measures_no_distance() -> None:
    """A float32 target: its distance to the float32 reference is rounding itself."""
    near = tuple(replace(d, baseline=1e-6, candidate=3e-6) for d in far(12, 12))
    test = sign_test(near, Probe.SCORE, REFERENCE_FLOORS)
    assert test is not None
    assert (test.resolved, test.significant) == (False, False)


def test_canaries_that_did_not_move_say_nothing() -> None:
    same = tuple(replace(d, candidate=d.baseline) for d in far(5, 5))
    assert sign_test(same, Probe.SCORE, None) is None
    both = sign_test((*same, *far(9, 9, probe=Probe.SCORE)[5:]), Probe.SCORE, None)
    assert both is not None
    assert both.asked == 4


def test_rounding_beside_a_changed_model_says_so_and_does_not_contradict_itself() -> None:
    found = diagnosed(calm(distances=far(6, 12, 1.05), model=Equality.DIFFERENT))
    assert found.sentence.startswith(
        "rounding: the model changed, by no more than rounding shows: the reference stayed"
    )
    same = diagnosed(calm(distances=far(6, 12, 1.05)))
    assert same.sentence.startswith("rounding: the reference stayed calm")


def test_a_canary_that_has_flipped_is_not_condemned_a_second_time() -> None:
    evidence = calm(distances=far(12, 12))
    first, *others = canary_verdicts(parted(1.1), FLOORS, farther_canaries(evidence))
    assert [finding.outcome for finding in first.findings] == [Outcome.FLIP]
    assert {finding.outcome for finding in others[0].findings} == {Outcome.SHIFTED, Outcome.NUMERIC}


def test_a_calm_reference_and_no_greater_distance_is_rounding() -> None:
    assert word(calm(distances=far(6, 12, 1.05))) is ChangeClass.ROUNDING


def test_a_calm_reference_and_greater_distance_is_a_defect_of_the_native_path_in_either_probe() -> None:
    for probe in Probe:
        evidence = calm(distances=far(12, 12, 1.5, probe))
        assert word(evidence) is ChangeClass.NATIVE_PATH_DEFECT
        assert [test.probe for test in sign_tests(evidence)] == [probe]


def test_a_calm_reference_and_a_shift_beyond_the_yardstick_is_a_defect_too() -> None:
    native = comparison(*(trace(f"c{n:02}", 0.05) for n in range(3)))
    assert word(calm(distances=far(0, 0)), native) is ChangeClass.NATIVE_PATH_DEFECT


@pytest.mark.parametrize(
    "own",
    [
        comparison(*(trace(f"c{n:02}", 5e-6) for n in range(12))),  # beyond twice 2e-6 in the mean
        comparison(trace("c00", 2e-5), identical=tuple(f"c{n:02}" for n in range(1, 12))),  # in one canary, far
        comparison(trace("c00", 0.0, candidate_ills=(Ill.NONFINITE,)), identical=("c01",)),
        comparison(
            trace(
                "c00",
                0.0,
                movement=None,
                prompt=PromptDifference(
                    index=0, baseline_ids=(1,), candidate_ids=(2,), lengths=(1, 1), text_differs=True
                ),
            )
        ),
    ],
)
def test_a_reference_that_moved_means_model_or_input(own: Comparison) -> None:
    assert word(calm(comparison=own, distances=far(12, 12))) is ChangeClass.MODEL_OR_INPUT_CHANGE


def test_on_the_same_stack_one_bit_of_the_reference_is_enough() -> None:
    own = comparison(trace("c00", 1e-9), identical=("c01",))
    assert word(calm(comparison=own, stack=Equality.SAME)) is ChangeClass.MODEL_OR_INPUT_CHANGE
    elsewhere = calm(comparison=own, stack=Equality.DIFFERENT, distances=far(6, 12, 1.05))
    assert word(elsewhere) is ChangeClass.ROUNDING


def test_tokens_that_part_while_every_logit_agrees_are_no_rounding() -> None:
    parted = Divergence(
        position=2,
        baseline_id=1,
        candidate_id=2,
        baseline_margin=3.0,
        candidate_margin=3.0,
        movement=0.0,
        missing=None,
        before="",
        baseline_text="a",
        candidate_text="b",
    )
    native = comparison(trace("c00", 0.0, Probe.DECODE, movement=replace(moved(0.0), moved=0), divergence=parted))
    assert word(calm(comparison=comparison(identical=("c00",))), native) is ChangeClass.MODEL_OR_INPUT_CHANGE


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (None, NO_REFERENCE),
        (ReferenceEvidence(absent="turned off"), "turned off"),
        (ReferenceEvidence(distances=far(12, 12)), NOT_RUN),
    ],
)
def test_without_a_reference_no_word_is_used_and_the_reason_is_said(
    evidence: ReferenceEvidence | None, why: str
) -> None:
    found = diagnosed(evidence)
    assert (found.word, found.absent) == (None, why)
    for name in ChangeClass:
        assert name.value.replace("_", " ") + ":" not in found.sentence


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        (parted(0.6), ChangeClass.ROUNDING),  # an honest flip, just beyond F, while twelve canaries are no farther
        (parted(1.1), ChangeClass.NATIVE_PATH_DEFECT),  # beyond twice F
        (parted(None), ChangeClass.NATIVE_PATH_DEFECT),  # to a token that was not even kept
        (parted(1.1, top=False), ChangeClass.ROUNDING),  # a processor chose as it always did: D of raw logits is moot
    ],
)
def test_what_a_flip_says_beside_a_calm_reference(native: Comparison, expected: ChangeClass) -> None:
    evidence = calm(distances=far(6, 12, 1.05), native=FLOORS)
    assert word(evidence, native) is expected


def test_a_token_beside_the_arg_max_where_the_model_section_changed_was_chosen_otherwise() -> None:
    evidence = calm(distances=far(6, 12, 1.05), native=FLOORS, model=Equality.DIFFERENT)
    assert word(evidence, parted(0.1, top=False)) is ChangeClass.MODEL_OR_INPUT_CHANGE
    assert word(evidence, parted(0.6)) is ChangeClass.ROUNDING


def test_scores_forced_on_other_tokens_are_no_movement_of_the_reference() -> None:
    own = comparison(trace("c00", 1.0, mismatched=("other tokens",), movement=None), identical=("c01",))
    native = comparison(trace("c00", 0.02), trace("c01", 0.02))
    assert word(calm(comparison=own, stack=Equality.SAME, distances=far(1, 2, 1.05)), native) is ChangeClass.ROUNDING


def test_a_prompt_that_the_suite_redefined_decides_nothing_about_the_others() -> None:
    prompts = PromptDifference(index=0, baseline_ids=(1,), candidate_ids=(2,), lengths=(1, 1), text_differs=True)
    edited = trace("c00", 0.0, movement=None, prompt=prompts)
    own = comparison(edited, *(trace(f"c{n:02}", 2e-6) for n in range(1, 12)))
    native = comparison(edited, *(trace(f"c{n:02}", 0.025) for n in range(1, 12)))
    known = Circumstances(
        model=Equality.SAME,
        stack=Equality.DIFFERENT,
        behaviour=Equality.SAME,
        floors=FLOORS,
        suite_changed=frozenset({"c00"}),
        evidence=calm(comparison=own, distances=far(6, 12)),
    )
    quiet = judge(native, known, Policy()).diagnosis
    assert quiet is not None
    assert quiet.word is ChangeClass.ROUNDING


def test_what_does_not_repeat_gets_no_word() -> None:
    known = Circumstances(
        model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME, evidence=calm(), reproduced=False
    )
    verdict = judge(NATIVE, known, Policy())
    assert (verdict.kind, verdict.diagnosis) == (VerdictKind.UNSTABLE, None)


def test_the_rule_is_not_put_to_a_vote() -> None:
    known = Circumstances(
        model=Equality.SAME,
        stack=Equality.SAME,
        behaviour=Equality.SAME,
        floors=FLOORS,
        evidence=calm(distances=far(12, 12)),
        quorum=Quorum(k=2, n=3),
    )
    assert judge(NATIVE, known, Policy()).counts == {Outcome.SHIFTED: 12}


def test_a_decode_without_a_score_is_judged_by_its_own_movement() -> None:
    long, short = (replace(moved(0.05), positions=n) for n in (8, 7))
    for movement, outcome in ((long, Outcome.SHIFTED), (short, Outcome.NUMERIC)):
        alone = comparison(trace("c00", 0.0, Probe.DECODE, movement=movement))
        assert canary_verdicts(alone, FLOORS)[0].outcome is outcome
    beside = comparison(trace("c00", 0.0, Probe.DECODE, movement=long), trace("c00", 0.01))
    assert canary_verdicts(beside, FLOORS)[0].outcome is Outcome.NUMERIC


def test_nothing_moved_needs_no_word() -> None:
    assert diagnose(comparison(identical=("a",)), calm(), ()) is None


def test_the_rule_makes_a_numeric_canary_shifted_and_the_verdict_drift() -> None:
    same = Circumstances(model=Equality.SAME, stack=Equality.DIFFERENT, behaviour=Equality.SAME, floors=FLOORS)
    quiet = judge(NATIVE, replace(same, evidence=calm(distances=far(6, 12))), Policy())
    loud = judge(NATIVE, replace(same, evidence=calm(distances=far(12, 12))), Policy())
    assert (quiet.kind, loud.kind) == (VerdictKind.NUMERIC, VerdictKind.DRIFT)
    assert loud.counts == {Outcome.SHIFTED: 12}
    assert "2 times as far from the reference" in loud.canaries[0].findings[0].why
    assert loud.diagnosis is not None
    assert (loud.diagnosis.farther, loud.diagnosis.asked) == (12, 12)


def test_a_word_is_only_for_verdicts_on_numbers() -> None:
    prompts = PromptDifference(index=0, baseline_ids=(1,), candidate_ids=(2,), lengths=(1, 1), text_differs=True)
    asked = comparison(trace("c00", 0.0, movement=None, prompt=prompts))
    circumstances = Circumstances(model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME, evidence=calm())
    verdict = judge(asked, circumstances, Policy())
    assert verdict.kind is VerdictKind.INCOMPARABLE
    assert verdict.diagnosis is None


def test_the_distance_is_taken_over_the_shared_context_only(heads: Any) -> None:
    reference, baseline, candidate = heads
    found = distance(key("a"), reference, baseline, candidate)
    assert found is not None
    assert (found.positions, found.baseline, found.candidate) == (2, pytest.approx(0.1), pytest.approx(0.3))
    assert found.ratio == pytest.approx(3.0)


def test_a_reference_of_other_tokens_measures_nothing(heads: Any) -> None:
    reference, baseline, candidate = heads
    assert distance(key("a"), replace(reference, output_ids=reference.output_ids + 1), baseline, candidate) is None
    nan = replace(candidate, logprob=np.full(3, np.nan, np.float32))
    assert distance(key("a"), reference, baseline, nan) is None


@pytest.fixture
def heads() -> tuple[Any, Any, Any]:
    """Three heads of three tokens; the candidate parts at the last one."""
    head = sample_head()
    ids = np.asarray([1, 2, 3], np.int32)
    parts = {"prompt_ids": np.asarray([9], np.int32)}
    lp = [np.asarray(v, np.float32) for v in ([-1.0, -1.0, -1.0], [-1.1, -0.9, -1.0], [-1.3, -0.7, -9.0])]
    base = replace(head, output_ids=ids, logprob=lp[0], **parts)
    return base, replace(base, logprob=lp[1]), replace(base, logprob=lp[2], output_ids=np.asarray([1, 2, 4], np.int32))
