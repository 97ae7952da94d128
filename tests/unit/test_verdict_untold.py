"""Why neither rounding nor a defect is said, and the counts of decodes that say a defect. Values by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from verdict_samples import FLOORS, REFERENCE_FLOORS, TIE, calm, comparison, diagnosed, far, key, parted, trace, word

from driftpin.comparison.distance import Distance
from driftpin.comparison.facts import (
    Comparison,
    Rerouted,
    Routing,
    TraceComparison,
)
from driftpin.environment.environment import Equality
from driftpin.settings.policy import Policy
from driftpin.trace.probe import Probe
from driftpin.verdict.diagnosis import ChangeClass, diagnose
from driftpin.verdict.evidence import sign_test
from driftpin.verdict.floors import RepeatFloor
from driftpin.verdict.judge import Circumstances, judge
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import canary_verdicts
from driftpin.verdict.quorum import Quorum


def test_six_canaries_cannot_be_significant_and_that_is_known() -> None:
    six, seven = (sign_test(far(n, n, 9.0), Probe.SCORE, REFERENCE_FLOORS) for n in (6, 7))
    assert six is not None
    assert (six.powerless, six.significant) == (True, False)
    assert seven is not None
    assert (seven.powerless, seven.significant) == (False, True)
    little, some, much = (diagnosed(calm(distances=far(4, 4, by))) for by in (1.19, 1.5, 9.0))
    assert little.word is ChangeClass.ROUNDING
    assert "could not have shown more" in little.sentence
    assert some.word is None  # farther in all of them is no rounding on the silence of a test: fewer acquit no more
    assert (much.word, much.absent) == (
        None,
        "4 canaries are too few for the sign test, and all of them lie 9 times as far",
    )


def test_a_score_that_could_have_spoken_is_no_excuse_for_decodes_that_could_not() -> None:
    found = diagnosed(calm(distances=(*far(6, 12, 1.05), *far(4, 4, 2.5, Probe.DECODE))))
    assert found.absent == "4 canaries are too few for the sign test, and all of them lie 2.5 times as far"
    near = tuple(replace(d, baseline=1e-6, candidate=3e-6) for d in far(4, 4, 2.5, Probe.DECODE))
    assert word(calm(distances=near)) is ChangeClass.ROUNDING  # a reference no more exact than the target says nothing
    one = diagnosed(calm(distances=(*far(6, 12, 1.05), *far(1, 1, 2.5, Probe.DECODE))))
    assert one.absent == "1 canary is too few for the sign test, and it lies 2.5 times as far"


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
    found = diagnosed(calm(distances=distances))
    assert found.word is expected
    if expected is None:
        unsure = "too many for chance, too few to be sure; more canaries would tell"
        small = "that is not chance, and less than the 1.2 from which it is called a defect"
        assert (small if distances[-1].ratio > 1 else unsure) in found.sentence


def test_numbers_that_moved_where_no_log_probability_shows_it_are_not_weighed() -> None:
    found = diagnosed(calm())
    assert (found.word, found.absent) == (
        None,
        "no log-probability of the baseline's tokens shows what moved, so the reference has nothing to weigh",
    )


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
    found = diagnosed(calm(distances=far(6, 12, 1.05), native=FLOORS), rerouted(movement, routing))
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
    found = diagnosed(calm(distances=far(6, 12, 1.05), native=calmer), native)
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
    found = diagnosed(told[1 / 48], native)
    assert str(found.absent).endswith("two tokens, and no routing was recorded")
    recorded = rerouted(9.0, None)  # every router is known to have chosen as before
    assert word(told[1 / 48], recorded) is ChangeClass.NATIVE_PATH_DEFECT


def test_a_far_flip_that_too_few_repeats_show_is_no_defect() -> None:
    """One repeat of three flips far: k of n calls its canary numeric, and no word may rest on it."""
    far_flip = parted(1.1).changed[0]
    native = comparison(replace(far_flip, key=replace(far_flip.key, repeat=2)), trace("c01", 0.02))
    known = Circumstances(
        model=Equality.SAME,
        stack=Equality.DIFFERENT,
        behaviour=Equality.SAME,
        floors=FLOORS,
        evidence=calm(distances=far(6, 12, 1.05)),
    )
    once, always = (judge(native, replace(known, quorum=quorum), Policy()) for quorum in (Quorum(k=2, n=3), Quorum()))
    assert once.diagnosis is not None
    assert always.diagnosis is not None
    assert (once.kind, once.diagnosis.word) == (VerdictKind.NUMERIC, ChangeClass.ROUNDING)
    assert (always.kind, always.diagnosis.word) == (VerdictKind.DRIFT, ChangeClass.NATIVE_PATH_DEFECT)


def test_a_sure_excess_that_is_small_does_not_ask_for_more_canaries() -> None:
    """A quarter of a thousand texts part early: not chance, and no more than two yardsticks make part."""
    names = tuple(f"n{n}" for n in range(1000))
    early = replace(TIE, position=2, movement=0.1)
    native = comparison(*(trace(name, 0.0, Probe.DECODE, divergence=early) for name in names[:250]))
    native = replace(native, order=names, identical=tuple(key(name, Probe.DECODE) for name in names[250:]))
    measured = replace(FLOORS, parting=dict.fromkeys(names, 0.5), earliest=dict.fromkeys(names, 3))
    found = diagnosed(calm(distances=far(6, 12, 1.05), native=measured, comparison=native), native)
    said = str(found.absent)
    assert said.startswith("250 of 1000 texts part before rounding parts them in any seed (p = ")
    assert said.endswith("): that is not chance, and no more than a movement of two yardsticks makes do it")


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
    found = diagnosed(calm(distances=far(6, 12, 1.05, Probe.DECODE), native=FLOORS, still=still), native)
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
    measured = replace(
        FLOORS, parting=dict.fromkeys((f"c{n:02}" for n in range(12)), 0.5), beyond=0.0, beyond_yardstick=0.0
    )
    assert word(calm(native=measured), native) is ChangeClass.NATIVE_PATH_DEFECT
    three = decoded_alike(replace(native, changed=native.changed[:3]), 3)
    found = diagnosed(calm(distances=far(6, 12, 1.05), native=measured), three)
    assert str(found.absent).startswith("3 of 12 decodes moved beyond their limit (p = 0.0")
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
    found = diagnosed(calm(distances=far(6, 12, 1.05), native=measured), native)
    assert found.word is expected
    if expected is not ChangeClass.ROUNDING:
        assert f"{count} of 12 texts part before rounding parts them in any seed (p = 0.00" in found.sentence


def test_canaries_that_moved_must_have_been_asked_of_the_reference() -> None:
    evidence = calm(comparison=comparison(identical=("c01",)))
    found = diagnose(comparison(trace("c00", 0.02)), evidence, ())
    assert found is not None
    assert (found.word, found.absent) == (None, "the reference arm did not measure the canaries that moved")
