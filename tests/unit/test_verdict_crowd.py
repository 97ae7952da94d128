"""Counts of decodes against what rounding did at blessing: values by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from verdict_samples import TIE

from driftpin.comparison.facts import Comparison, Divergence, Movement, PromptDifference, TraceComparison
from driftpin.environment.environment import Equality
from driftpin.settings.policy import Policy
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.verdict.crowd import Crowd, condemned, crowds, moved_beyond, parted_early, parted_far
from driftpin.verdict.floors import Floors, RepeatFloor
from driftpin.verdict.judge import Circumstances, judge
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import Finding, Outcome
from driftpin.verdict.quorum import Quorum
from driftpin.verdict.shift import shift_of
from driftpin.verdict.texts import Texts, texts_of

NAMES = tuple(f"c{n:02}" for n in range(12))
FLOORS = Floors(
    pair=0.5,
    logprob=0.02,
    by_canary={},
    blocks={},
    samples=100,
    seeds=4,
    parting=dict.fromkeys(NAMES, 0.25),
    far_parting=0.0,
    beyond=0.0,
    beyond_yardstick=0.0,
)
EARLY = replace(FLOORS, earliest=dict.fromkeys(NAMES[:11], 3))  # rounding parts the last one nowhere
LIMIT = 0.04  # twice the yardstick


def decode(canary: str, size: float, at: Divergence | None = None, shared: int = 3, **parts: Any) -> TraceComparison:
    positions = shared + (at is not None)
    moved = Movement(
        positions=positions,
        moved=positions,
        first_moved=0,
        mean_abs_logprob=size,
        max_abs_logprob=size,
        max_pair=0.1,
    )
    told = {"key": TraceKey(canary=canary, probe=Probe.DECODE), "movement": moved, "divergence": at}
    return TraceComparison(**{"identical": False, "tokens_equal": at is None, **told, **parts})


def comparison(*changed: TraceComparison) -> Comparison:
    """The others of the twelve canaries decode alike."""
    told = {t.key.canary for t in changed}
    return Comparison(
        order=NAMES,
        changed=changed,
        identical=tuple(TraceKey(canary=name, probe=Probe.DECODE) for name in NAMES if name not in told),
    )


def beyond(count: int, **parts: Any) -> Comparison:
    return comparison(*(decode(name, 2 * LIMIT, TIE, **parts) for name in NAMES[:count]))


@pytest.mark.parametrize(("count", "significant", "doubtful"), [(2, False, True), (3, False, True), (4, True, False)])
def test_four_of_twelve_decodes_beyond_their_limit_are_no_rounding(
    count: int, significant: bool, doubtful: bool
) -> None:
    """P(X >= 3) is 0.006 and P(X >= 4) 0.0009 where no beginning of 48 texts was beyond it under rounding."""
    crowd = moved_beyond(beyond(count), FLOORS)
    assert crowd is not None
    assert (len(crowd.found), crowd.asked, crowd.significant, crowd.doubtful) == (count, 12, significant, doubtful)
    assert crowd.words.startswith(f"{count} of 12 decodes moved beyond their limit (p = 0.0")
    found = condemned(crowds(beyond(count), FLOORS))
    assert set(found) == (set(NAMES[:count]) if significant else set())
    if significant:
        assert found["c00"].outcome is Outcome.SHIFTED
        assert "mean |Δ log-prob| is 0.08, above 0.04, as in too many" in found["c00"].why


@pytest.mark.parametrize(
    ("count", "surely", "p_value", "significant", "doubtful"),
    [
        (400, True, 1e-9, True, False),
        (400, False, 1e-9, False, True),
        (250, True, 1e-9, False, True),  # sure, and no more than a movement of two yardsticks does: neither word
        (250, True, 0.02, False, False),
        (400, True, 0.02, False, True),
        (0, True, 1e-9, False, False),
    ],
)
def test_an_excess_that_a_thousand_canaries_make_certain_needs_an_effect_too(
    count: int, surely: bool, p_value: float, significant: bool, doubtful: bool
) -> None:
    finding = Finding(outcome=Outcome.SHIFTED, why="early")
    found = {str(n): finding for n in range(count)}
    crowd = Crowd(found=found, asked=1000, p_value=p_value, least=1 / 3, surely=surely, what="texts part early")
    assert (crowd.significant, crowd.doubtful) == (significant, doubtful)


def crowd_of(count: int, asked: int) -> tuple[Crowd, ...]:
    """So many of so many texts part early, jump and move beyond their limits, all under four seeds."""
    names = [f"n{n}" for n in range(asked)]
    at = replace(TIE, position=2, movement=9.0)
    native = Comparison(
        order=tuple(names),
        changed=tuple(decode(name, 2 * LIMIT, at) for name in names[:count]),
        identical=tuple(TraceKey(canary=name, probe=Probe.DECODE) for name in names[count:]),
    )
    parting = dict.fromkeys(names, 0.25)
    measured = replace(
        FLOORS, parting=parting, earliest=dict.fromkeys(names, 3), far_parting=0.1, beyond_yardstick=0.25
    )
    early, beyond, far = (ask(native, measured) for ask in (parted_early, moved_beyond, parted_far))
    assert early is not None
    assert beyond is not None
    assert far is not None
    return early, beyond, far


def test_each_count_knows_what_two_yardsticks_would_do() -> None:
    early, beyond, far = crowd_of(40, 100)
    assert (early.least, beyond.least, far.least) == (2 / 6, 0.25, 0.2)
    assert (beyond.surely, far.surely) == (True, True)


@pytest.mark.parametrize(
    ("count", "asked", "surely"), [(7, 12, False), (8, 12, True), (41, 100, False), (42, 100, True)]
)
def test_two_yardsticks_part_a_third_of_the_texts_early_and_chance_some_more(
    count: int, asked: int, surely: bool
) -> None:
    """P(X >= 7 of 12) is 0.07 there and P(X >= 8) 0.02; of a hundred, 41 and 42 stand about the same five percent."""
    early, *_ = crowd_of(count, asked)
    assert (early.surely, early.significant, early.doubtful) == (surely, surely, not surely)


def test_a_model_whose_texts_often_begin_beyond_it_is_allowed_more() -> None:
    crowd = moved_beyond(beyond(4), replace(FLOORS, beyond=0.1))
    assert crowd is not None
    assert not crowd.significant


def test_nothing_beyond_its_limit_is_no_crowd() -> None:
    crowd = moved_beyond(comparison(*(decode(name, LIMIT) for name in NAMES)), FLOORS)
    assert crowd is not None
    assert (crowd.found, crowd.significant, crowd.doubtful) == ({}, False, False)


def test_a_text_that_parts_at_its_first_token_has_no_mean_and_is_not_asked() -> None:
    first = [decode(name, 0.0, replace(TIE, position=0), shared=0) for name in NAMES[4:]]
    crowd = moved_beyond(comparison(*(decode(name, 2 * LIMIT) for name in NAMES[:2]), *first), FLOORS)
    assert crowd is not None
    assert (len(crowd.found), crowd.asked) == (2, 4)


def test_without_the_share_at_two_yardsticks_there_is_no_effect_to_ask_for() -> None:
    assert moved_beyond(beyond(12), replace(FLOORS, beyond_yardstick=None)) is None


@pytest.mark.parametrize("floors", [None, replace(FLOORS, beyond=None, far_parting=None)])
def test_a_baseline_that_did_not_measure_it_condemns_nobody(floors: Floors | None) -> None:
    assert moved_beyond(beyond(12), floors) is None
    assert parted_far(beyond(12), floors) is None
    assert parted_early(beyond(12), floors) is None
    assert crowds(beyond(12), floors) == ()


def test_only_the_first_decode_alone_of_a_canary_that_was_asked_the_same_counts() -> None:
    others = [
        decode("c00", 1.0, key=TraceKey(canary="c00", probe=Probe.DECODE, shape=Shape.FILLED)),
        decode("c01", 1.0, key=TraceKey(canary="c01", probe=Probe.DECODE, repeat=1)),
        decode("c02", 1.0, key=TraceKey(canary="c02", probe=Probe.SCORE)),
        decode("c03", 1.0, mismatched=("k: 20 in the baseline, 5 in the candidate",)),
        decode(
            "c04",
            1.0,
            prompt=PromptDifference(index=0, baseline_ids=(1,), candidate_ids=(2,), lengths=(1, 1), text_differs=True),
        ),
    ]
    for crowd in (moved_beyond(comparison(*others), FLOORS), parted_early(comparison(*others), EARLY)):
        assert crowd is not None
        assert (crowd.found, crowd.asked) == ({}, 7)


@pytest.mark.parametrize(
    ("movement", "top", "count"), [(1.1, True, 5), (None, True, 5), (0.9, True, 0), (9.0, False, 0)]
)
def test_a_far_flip_is_beyond_twice_f_between_two_arg_maxes(movement: float | None, top: bool, count: int) -> None:
    far = replace(TIE, movement=movement, both_top=top)
    crowd = parted_far(comparison(*(decode(name, 0.0, far) for name in NAMES[:5])), FLOORS)
    assert crowd is not None
    assert (len(crowd.found), crowd.significant) == (count, count == 5)


def test_a_mixture_whose_pairs_jump_under_rounding_is_allowed_such_jumps() -> None:
    far = comparison(*(decode(name, 0.0, replace(TIE, movement=9.0)) for name in NAMES[:5]))
    calm, wild = (parted_far(far, replace(FLOORS, far_parting=share)) for share in (1 / 48, 7 / 48))
    assert calm is not None
    assert wild is not None
    assert (calm.significant, wild.significant) == (True, False)


def early(position: int, count: int, **parts: Any) -> Crowd:
    at = replace(TIE, **{"position": position, **parts})
    crowd = parted_early(comparison(*(decode(name, 0.0, at) for name in NAMES[:count])), EARLY)
    assert crowd is not None
    return crowd


@pytest.mark.parametrize(
    ("count", "significant", "doubtful"), [(5, False, False), (6, False, True), (7, False, True), (8, True, False)]
)
def test_eight_of_twelve_texts_that_part_before_every_seed_are_no_rounding(
    count: int, significant: bool, doubtful: bool
) -> None:
    """Each is first of four seeds and the candidate with one chance in five: P(X >= 7) is 0.0039, P(X >= 8) 0.0006."""
    crowd = early(2, count)
    assert (len(crowd.found), crowd.asked, crowd.significant, crowd.doubtful) == (count, 12, significant, doubtful)
    assert crowd.found["c00"].why == (
        "its text parts at output 2, which rounding alone does at output 3 at the earliest, and so do too many"
    )


def test_early_texts_are_drift_although_each_only_ties() -> None:
    known = Circumstances(model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME, floors=EARLY)
    at = replace(TIE, position=2)
    verdict = judge(comparison(*(decode(name, 0.0, at) for name in NAMES[:8])), known, Policy())
    assert (verdict.kind, verdict.counts) == (VerdictKind.DRIFT, {Outcome.SHIFTED: 8, Outcome.IDENTICAL: 4})


def test_with_more_seeds_fewer_canaries_do() -> None:
    native = comparison(*(decode(name, 0.0, replace(TIE, position=2)) for name in NAMES[:6]))
    four, nine = (parted_early(native, replace(EARLY, seeds=seeds)) for seeds in (4, 9))
    assert four is not None
    assert nine is not None
    assert (four.significant, nine.significant) == (False, True)  # P(X >= 6) is 0.019 and 0.0005


def test_where_no_seed_parts_any_parting_is_early_and_where_one_does_later_ones_are_not() -> None:
    assert set(early(3, 12).found) == {"c11"}  # rounding parts it nowhere; the others as early as this
    assert early(20, 11).found == {}
    assert (
        early(20, 12).found["c11"].why.startswith("its text parts at output 20, which rounding alone does in no seed")
    )
    assert early(2, 12, both_top=False).found == {}  # a processor chose beside the arg-max, and no seed knows it


def test_a_canary_that_blessing_did_not_score_is_never_early() -> None:
    partly = replace(EARLY, parting={"c00": 0.5})
    crowd = parted_early(comparison(*(decode(name, 0.0, replace(TIE, position=0)) for name in NAMES)), partly)
    assert crowd is not None
    assert set(crowd.found) == {"c00"}


def test_a_target_whose_own_repeats_part_is_not_asked_when() -> None:
    calm, restless = (EARLY.at_least(RepeatFloor(repeats=3, pair=0.1, tokens_differ=n)) for n in (0, 1))
    assert (calm.earliest, restless.earliest) == (EARLY.earliest, None)


def test_a_crowd_makes_canaries_shifted_and_the_verdict_drift_and_three_do_not() -> None:
    known = Circumstances(model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME, floors=FLOORS)
    quiet, loud = (judge(beyond(count), known, Policy()) for count in (3, 4))
    assert (quiet.kind, quiet.counts) == (VerdictKind.NUMERIC, {Outcome.TIE_FLIP: 3, Outcome.IDENTICAL: 9})
    assert (loud.kind, loud.counts) == (VerdictKind.DRIFT, {Outcome.SHIFTED: 4, Outcome.IDENTICAL: 8})


def test_repeats_that_vote_are_not_counted_by_their_first() -> None:
    """k of n decide about such a target: the counts ask one decode per canary, its first."""
    known = Circumstances(
        model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME, floors=EARLY, quorum=Quorum(k=2, n=3)
    )
    early = comparison(*(decode(name, 2 * LIMIT, replace(TIE, position=0)) for name in NAMES))
    verdict = judge(early, known, Policy())
    assert (verdict.kind, verdict.counts, verdict.crowds) == (VerdictKind.NUMERIC, {Outcome.NUMERIC: 12}, ())


def test_canaries_that_the_suite_redefined_are_not_counted() -> None:
    known = Circumstances(model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME, floors=FLOORS)
    redefined = replace(known, suite_changed=frozenset(NAMES[:1]))
    watched, all_of_them = (judge(beyond(4), asked, Policy()) for asked in (redefined, known))
    assert [crowd.words.partition(" decodes")[0] for crowd in (*all_of_them.crowds[:1], *watched.crowds[:1])] == [
        "4 of 12",
        "3 of 11",
    ]
    assert (all_of_them.texts, watched.texts) == (
        Texts(decoded=12, changed=4, by_rounding=3.0),
        Texts(decoded=11, changed=3, by_rounding=2.75),
    )
    assert (all_of_them.kind, watched.kind) == (VerdictKind.DRIFT, VerdictKind.NUMERIC)


def test_texts_that_changed_stand_beside_what_rounding_changes() -> None:
    changed = comparison(decode("c00", 0.0, TIE), decode("c01", 0.0))
    assert texts_of(changed, FLOORS) == Texts(decoded=12, changed=1, by_rounding=3.0)
    assert texts_of(changed, None) == Texts(decoded=12, changed=1, by_rounding=None)
    partly = replace(FLOORS, parting={"c00": 0.5})
    assert texts_of(changed, partly) == Texts(decoded=12, changed=1, by_rounding=None)
    assert texts_of(Comparison(order=()), FLOORS) is None
    crowded_in = decode("c00", 0.0, TIE, key=TraceKey(canary="c00", probe=Probe.DECODE, shape=Shape.FILLED))
    alone = replace(comparison(decode("c01", 0.0)), changed=(crowded_in, decode("c01", 0.0)))
    alone = replace(alone, identical=(*alone.identical, TraceKey(canary="c00", probe=Probe.DECODE)))
    assert texts_of(alone, FLOORS) == Texts(decoded=12, changed=0, by_rounding=3.0)  # in company it parts, alone not


def test_the_headline_says_that_texts_changed() -> None:
    known = Circumstances(model=Equality.SAME, stack=Equality.DIFFERENT, behaviour=Equality.SAME, floors=FLOORS)
    native = comparison(decode("c00", 0.0, TIE), decode("c01", 0.0, TIE))
    verdict = judge(native, known, Policy())
    assert verdict.headline == (
        "numeric: 2 tie_flip, 10 identical of 12 canaries; 2 texts changed, where rounding alone changes 3 on average"
    )
    assert judge(comparison(decode("c00", 0.0)), known, Policy()).headline == (
        "numeric: 1 numeric, 11 identical of 12 canaries"
    )
    older = replace(known, floors=replace(FLOORS, parting={}))
    assert judge(native, older, Policy()).headline.endswith("; 2 texts changed")


def test_the_shift_is_that_of_the_decodes_where_only_they_moved() -> None:
    scored = tuple(TraceKey(canary=name, probe=Probe.SCORE) for name in NAMES)
    native = replace(comparison(decode("c00", 0.24)), identical=scored)
    shift = shift_of(native, FLOORS)
    assert shift is not None
    assert (shift.probe, shift.mean, shift.canaries) == (Probe.DECODE, 0.24, 1)
    both = replace(native, changed=(*native.changed, decode("c00", 0.12, key=scored[0])), identical=scored[1:])
    shift = shift_of(both, FLOORS)
    assert shift is not None
    assert (shift.probe, shift.mean, shift.times) == (Probe.SCORE, pytest.approx(0.01), pytest.approx(0.5))
    still = shift_of(Comparison(order=NAMES, identical=scored), FLOORS)
    assert still is not None
    assert (still.probe, still.mean) == (Probe.SCORE, 0.0)
