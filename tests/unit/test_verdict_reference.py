"""The reference rule: sign test, class words, and what is said without a reference. Values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from store_samples import head as sample_head

from driftpin.comparison.distance import Distance, distance
from driftpin.comparison.facts import (
    Comparison,
    Divergence,
    Movement,
    PromptDifference,
    Rerouted,
    Routing,
    TraceComparison,
)
from driftpin.environment.environment import Equality
from driftpin.settings.policy import Policy
from driftpin.trace.health import Ill
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.diagnosis import NO_REFERENCE, NOT_RUN, ChangeClass, diagnose
from driftpin.verdict.evidence import ReferenceEvidence, farther_canaries, sign_test, sign_tests
from driftpin.verdict.floors import Floors, RepeatFloor
from driftpin.verdict.judge import Circumstances, judge
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import Outcome, canary_verdicts
from driftpin.verdict.quorum import Quorum

FLOORS = Floors(pair=0.5, logprob=0.02, by_canary={}, blocks={}, samples=100, seeds=4)
REFERENCE_FLOORS = replace(FLOORS, pair=1e-5, logprob=2e-6)


def key(canary: str, probe: Probe = Probe.SCORE) -> TraceKey:
    return TraceKey(canary=canary, probe=probe)


def moved(size: float) -> Movement:
    return Movement(positions=5, moved=5, first_moved=0, mean_abs_logprob=size, max_abs_logprob=size, max_pair=0.1)


def trace(canary: str, size: float, probe: Probe = Probe.SCORE, **parts: Any) -> TraceComparison:
    return TraceComparison(
        **{"key": key(canary, probe), "identical": False, "tokens_equal": True, "movement": moved(size), **parts}
    )


def comparison(*changed: TraceComparison, identical: tuple[str, ...] = ()) -> Comparison:
    order = dict.fromkeys([*(t.key.canary for t in changed), *identical])
    return Comparison(order=tuple(order), changed=changed, identical=tuple(key(c) for c in identical))


def far(count: int, of: int, by: float = 2.0, probe: Probe = Probe.SCORE) -> tuple[Distance, ...]:
    """`of` canaries of which `count` lie `by` times as far as before, the others a little nearer."""
    ratios = [by if n < count else 0.95 for n in range(of)]
    pairs = [(f"c{n:02}", 0.03 * ratio) for n, ratio in enumerate(ratios)]
    return tuple(Distance(key=key(c, probe), positions=5, baseline=0.03, candidate=new) for c, new in pairs)


def calm(*, floors: Floors = REFERENCE_FLOORS, **parts: Any) -> ReferenceEvidence:
    """A reference that moved by half its limit on another stack."""
    own = comparison(*(trace(f"c{n:02}", 2e-6) for n in range(12)))
    return ReferenceEvidence(**{"floors": floors, "comparison": own, "stack": Equality.DIFFERENT, **parts})


NATIVE = comparison(*(trace(f"c{n:02}", 0.025) for n in range(12)))


def word(evidence: ReferenceEvidence | None, native: Comparison = NATIVE) -> ChangeClass | None:
    found = diagnose(native, evidence, canary_verdicts(native, FLOORS, farther_canaries(evidence)))
    assert found is not None
    return found.word


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


def test_six_canaries_cannot_be_significant_and_that_is_known() -> None:
    six, seven = (sign_test(far(n, n, 9.0), Probe.SCORE, REFERENCE_FLOORS) for n in (6, 7))
    assert six is not None
    assert (six.powerless, six.significant) == (True, False)
    assert seven is not None
    assert (seven.powerless, seven.significant) == (False, True)
    little, much = (diagnose(NATIVE, calm(distances=far(4, 4, by)), ()) for by in (1.5, 9.0))
    assert little is not None
    assert little.word is ChangeClass.ROUNDING
    assert "could not have shown more" in little.sentence
    assert much is not None  # nine times as far in all of them is no rounding on the silence of a test
    assert (much.word, much.absent) == (
        None,
        "4 canaries are too few for the sign test, and all of them lie 9 times as far",
    )


def test_a_score_that_could_have_spoken_is_no_excuse_for_decodes_that_could_not() -> None:
    found = diagnose(NATIVE, calm(distances=(*far(6, 12, 1.05), *far(4, 4, 2.5, Probe.DECODE))), ())
    assert found is not None
    assert found.absent == "4 canaries are too few for the sign test, and all of them lie 2.5 times as far"
    near = tuple(replace(d, baseline=1e-6, candidate=3e-6) for d in far(4, 4, 2.5, Probe.DECODE))
    assert word(calm(distances=near)) is ChangeClass.ROUNDING  # a reference no more exact than the target says nothing
    one = diagnose(NATIVE, calm(distances=(*far(6, 12, 1.05), *far(1, 1, 2.5, Probe.DECODE))), ())
    assert one is not None
    assert one.absent == "1 canary is too few for the sign test, and it lies 2.5 times as far"


def test_two_probes_that_moved_share_the_risk_of_being_wrong() -> None:
    """p of 10 of 11 is 0.0059: enough where only decodes moved, not where scores were asked as well."""
    decodes = far(10, 11, 3.0, Probe.DECODE)
    assert word(calm(distances=decodes)) is ChangeClass.NATIVE_PATH_DEFECT
    assert word(calm(distances=(*far(6, 12, 1.05), *decodes))) is None


@pytest.mark.parametrize(
    ("distances", "expected"),
    [
        (far(10, 12, 1.5), None),  # p = 0.019: chance hardly does it
        (far(9, 12, 1.5), ChangeClass.ROUNDING),  # p = 0.073
        (far(10, 12, 1.15), ChangeClass.ROUNDING),  # by less than the least that could be a defect, and not surely
        (far(12, 12, 1.19), None),  # surely farther, though by less than that
        (far(12, 12, 1.04), ChangeClass.ROUNDING),  # no farther than benign changes reach in the mean
        (far(11, 12, 1.5), ChangeClass.NATIVE_PATH_DEFECT),  # p = 0.0032
    ],
)
def test_between_chance_and_certainty_there_is_no_word(
    distances: tuple[Distance, ...], expected: ChangeClass | None
) -> None:
    found = diagnose(NATIVE, calm(distances=distances), ())
    assert found is not None
    assert found.word is expected
    if expected is None:
        unsure = "too many for chance, too few to be sure; more canaries would tell"
        small = "that is not chance, and less than the 1.2 from which it is called a defect"
        assert (small if distances[-1].ratio > 1 else unsure) in found.sentence


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


def test_numbers_that_moved_where_no_log_probability_shows_it_are_not_weighed() -> None:
    found = diagnose(NATIVE, calm(), ())
    assert found is not None
    assert (found.word, found.absent) == (
        None,
        "no log-probability of the baseline's tokens shows what moved, so the reference has nothing to weigh",
    )


def test_rounding_beside_a_changed_model_says_so_and_does_not_contradict_itself() -> None:
    found = diagnose(NATIVE, calm(distances=far(6, 12, 1.05), model=Equality.DIFFERENT), ())
    assert found is not None
    assert found.sentence.startswith(
        "rounding: the model changed, by no more than rounding shows: the reference stayed"
    )
    same = diagnose(NATIVE, calm(distances=far(6, 12, 1.05)), ())
    assert same is not None
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
    found = diagnose(NATIVE, evidence, ())
    assert found is not None
    assert (found.word, found.absent) == (None, why)
    for name in ChangeClass:
        assert name.value.replace("_", " ") + ":" not in found.sentence


def parted(movement: float | None, *, top: bool = True) -> Comparison:
    """One decode of twelve canaries parts by that much; F is 0.5."""
    at = Divergence(
        position=2,
        baseline_id=1,
        candidate_id=2,
        baseline_margin=0.1,
        candidate_margin=0.1,
        movement=movement,
        missing=None,
        before="",
        baseline_text="a",
        candidate_text="b",
        both_top=top,
    )
    return comparison(trace("c00", 0.01, Probe.DECODE, divergence=at), *(trace(f"c{n:02}", 0.02) for n in range(1, 12)))


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


ROUTED = Routing(positions=40, changed=(Rerouted(module="layers.0.mlp", position=3, count=1),))


def rerouted(movement: float | None, routing: Routing | None = ROUTED, **parts: Any) -> Comparison:
    """Behind a router that chose other experts, one decode of twelve canaries parts by that much."""
    first, *others = parted(movement).changed
    return comparison(replace(first, routing=routing, **parts), *others)


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("movement", [1.1, None])
def test_a_far_flip_behind_a_router_is_neither_a_defect_nor_rounding(movement: float | None, count: int) -> None:
    """Another expert moves logits by a jump as wide as experts differ, whatever made the router choose it."""
    routing = Routing(positions=40, changed=(replace(ROUTED.first, count=count),))
    found = diagnose(rerouted(movement, routing), calm(distances=far(6, 12, 1.05), native=FLOORS), ())
    assert found is not None
    assert (found.word, found.absent) == (
        None,
        "c00 parts by far more than rounding moves two tokens, behind a router that chose other experts",
    )
    said = canary_verdicts(rerouted(movement, routing), FLOORS)[0].findings[0].why
    assert "a router chose other experts before it, first layers.0.mlp at position 3" in said


def test_far_flips_behind_routers_in_many_canaries_are_a_defect_where_rounding_made_few() -> None:
    first = rerouted(9.0).changed[0]
    native = comparison(*(replace(first, key=key(f"c{n:02}", Probe.DECODE)) for n in range(5)))
    native = decoded_alike(native, 5)
    calmer = replace(FLOORS, parting=dict.fromkeys((f"c{n:02}" for n in range(12)), 0.5), far_parting=1 / 48)
    found = diagnose(native, calm(distances=far(6, 12, 1.05), native=calmer), ())
    assert found is not None
    assert found.word is ChangeClass.NATIVE_PATH_DEFECT
    assert "while 5 of 12 canaries part by far more than rounding moves two tokens (p = 0.0" in found.sentence
    wild = replace(calmer, far_parting=7 / 48)
    assert word(calm(distances=far(6, 12, 1.05), native=wild), native) is None


def test_a_far_flip_whose_routers_nobody_recorded_is_a_defect_only_in_a_model_that_never_jumps() -> None:
    native = rerouted(9.0, None, depth_absent="compiled")
    near = far(6, 12, 1.05)
    told = {share: calm(distances=near, native=replace(FLOORS, far_parting=share)) for share in (None, 0.0, 1 / 48)}
    assert [word(evidence, native) for evidence in told.values()] == [
        ChangeClass.NATIVE_PATH_DEFECT,
        ChangeClass.NATIVE_PATH_DEFECT,
        None,
    ]
    found = diagnose(native, told[1 / 48], ())
    assert found is not None
    assert str(found.absent).endswith("two tokens, and no routing was recorded")
    recorded = rerouted(9.0, None)  # every router is known to have chosen as before
    assert word(told[1 / 48], recorded) is ChangeClass.NATIVE_PATH_DEFECT


def decoded_alike(native: Comparison, start: int) -> Comparison:
    """The same, and the other canaries of twelve decode in the baseline's bits."""
    names = [f"c{n:02}" for n in range(12)]
    return replace(native, order=tuple(names), identical=tuple(key(name, Probe.DECODE) for name in names[start:]))


def only_decoded(*scores: TraceComparison) -> Comparison:
    """Twelve decodes moved a little; of the scores, those given did, and the others agree in every bit."""
    native = comparison(*(trace(f"c{n:02}", 0.01, Probe.DECODE) for n in range(12)), *scores)
    told = {t.key.canary for t in scores}
    return replace(native, identical=tuple(key(f"c{n:02}") for n in range(12) if f"c{n:02}" not in told))


@pytest.mark.parametrize(
    ("native", "still", "expected"),
    [
        (only_decoded(), True, None),
        (only_decoded(), False, ChangeClass.ROUNDING),  # a known change of the stack explains it
        (only_decoded(trace("c00", 0.01)), True, ChangeClass.ROUNDING),  # scores moved: the reference can tell
        (only_decoded(trace("c00", 0.0, identical=True)), True, None),  # bits agree although the blobs differ
        (comparison(trace("c00", 0.01, Probe.DECODE)), True, None),  # a suite without scores
    ],
)
def test_decodes_that_move_alone_on_an_unchanged_stack_are_not_acquitted(
    native: Comparison, still: bool, expected: ChangeClass | None
) -> None:
    found = diagnose(native, calm(distances=far(6, 12, 1.05, Probe.DECODE), native=FLOORS, still=still), ())
    assert found is not None
    assert found.word is expected
    if expected is None:
        assert str(found.absent).startswith("only decoding")


@pytest.mark.parametrize(
    ("stack", "repeat", "expected"),
    [
        (Equality.SAME, None, None),
        (Equality.UNDETERMINED, RepeatFloor(repeats=3), None),  # judged as the same, the stricter way
        (Equality.DIFFERENT, RepeatFloor(repeats=3), ChangeClass.ROUNDING),
        (Equality.SAME, RepeatFloor(repeats=3, pair=0.1, logprob=0.01), ChangeClass.ROUNDING),  # moves by itself
    ],
)
def test_a_stack_is_still_where_nothing_known_differs_and_the_target_repeats_itself(
    stack: Equality, repeat: RepeatFloor | None, expected: ChangeClass | None
) -> None:
    known = Circumstances(
        model=Equality.SAME,
        stack=stack,
        behaviour=Equality.SAME,
        floors=FLOORS,
        repeat=repeat,
        evidence=calm(distances=far(6, 12, 1.05, Probe.DECODE)),
    )
    told = judge(only_decoded(), known, Policy()).diagnosis
    assert told is not None
    assert told.word is expected


def test_many_decodes_beyond_their_limit_are_a_defect_although_every_canary_has_flipped_already() -> None:
    at = parted(1.1, top=False).changed[0].divergence
    flips = (trace(f"c{n:02}", 0.2, Probe.DECODE, divergence=at) for n in range(4))
    native = decoded_alike(comparison(*flips), 4)
    measured = replace(FLOORS, parting=dict.fromkeys((f"c{n:02}" for n in range(12)), 0.5), beyond=0.0)
    assert word(calm(native=measured), native) is ChangeClass.NATIVE_PATH_DEFECT
    three = decoded_alike(replace(native, changed=native.changed[:3]), 3)
    found = diagnose(three, calm(distances=far(6, 12, 1.05), native=measured), ())
    assert found is not None
    assert str(found.absent).startswith("3 of 12 decodes moved more than rounding moves them (p = 0.0")
    unmeasured = calm(distances=far(6, 12, 1.05), native=replace(measured, beyond=None))
    assert word(unmeasured, three) is ChangeClass.ROUNDING


@pytest.mark.parametrize(
    ("count", "expected"), [(5, ChangeClass.ROUNDING), (7, None), (8, ChangeClass.NATIVE_PATH_DEFECT)]
)
def test_texts_that_part_before_every_seed_are_a_defect_in_most_canaries(
    count: int, expected: ChangeClass | None
) -> None:
    first = parted(0.1).changed[0]
    native = comparison(*(replace(first, key=key(f"c{n:02}", Probe.DECODE)) for n in range(count)))
    native = decoded_alike(native, count)
    measured = replace(FLOORS, parting=dict.fromkeys(native.order, 0.5), earliest=dict.fromkeys(native.order, 3))
    found = diagnose(native, calm(distances=far(6, 12, 1.05), native=measured), ())
    assert found is not None
    assert found.word is expected
    if expected is not ChangeClass.ROUNDING:
        assert f"{count} of 12 texts part before rounding parts them in any seed (p = 0.00" in found.sentence


def test_a_token_beside_the_arg_max_where_the_model_section_changed_was_chosen_otherwise() -> None:
    evidence = calm(distances=far(6, 12, 1.05), native=FLOORS, model=Equality.DIFFERENT)
    assert word(evidence, parted(0.1, top=False)) is ChangeClass.MODEL_OR_INPUT_CHANGE
    assert word(evidence, parted(0.6)) is ChangeClass.ROUNDING


def test_canaries_that_moved_must_have_been_asked_of_the_reference() -> None:
    evidence = calm(comparison=comparison(identical=("c01",)))
    found = diagnose(comparison(trace("c00", 0.02)), evidence, ())
    assert found is not None
    assert (found.word, found.absent) == (None, "the reference arm did not measure the canaries that moved")


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
