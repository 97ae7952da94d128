"""Targets that do not repeat every bit: k of n, the repeat floor, and what is unstable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from store_samples import head as sample_head

from driftpin.comparison.facts import Comparison, RepeatMovement
from driftpin.environment.environment import Equality
from driftpin.settings.policy import Policy
from driftpin.trace.head import Head
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.verdict.floors import Floors, RepeatFloor
from driftpin.verdict.judge import Circumstances, exceeds, judge
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import Finding, Outcome
from driftpin.verdict.quorum import Quorum, voted
from driftpin.verdict.repeat import Pair, pairs_to_ask, repeat_floor

TWO_OF_THREE = Quorum(k=2, n=3)
FLOORS = Floors(pair=0.25, logprob=0.02, by_canary={"a": 0.03}, blocks={}, samples=100, seeds=4)
CALM = Circumstances(model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME)


def key(repeat: int = 0, canary: str = "a", shape: Shape = Shape.ALONE) -> TraceKey:
    return TraceKey(canary=canary, probe=Probe.DECODE, shape=shape, repeat=repeat)


def findings(*outcomes: Outcome) -> list[Finding]:
    return [Finding(outcome=outcome, why="seen", key=key(n)) for n, outcome in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        ((Outcome.FLIP, Outcome.IDENTICAL, Outcome.IDENTICAL), False),
        ((Outcome.FLIP, Outcome.FLIP, Outcome.IDENTICAL), True),
        ((Outcome.FLIP, Outcome.SHIFTED, Outcome.IDENTICAL), False),  # two kinds of one each are not two of one
        ((Outcome.BROKEN, Outcome.IDENTICAL, Outcome.IDENTICAL), True),  # needs no second witness
    ],
)
def test_a_finding_counts_when_k_of_n_repeats_show_it(seen: tuple[Outcome, ...], counts: bool) -> None:
    after = voted(findings(*seen), TWO_OF_THREE)
    assert (after[0].outcome is seen[0]) is counts
    if not counts:
        assert after[0].outcome is Outcome.NUMERIC
        assert "1 of 3 repeats show it, 2 are needed" in after[0].why


def test_what_hides_its_text_hides_it_behind_a_vote_too() -> None:
    flip = Finding(outcome=Outcome.FLIP, why="'secret' became 'word'; D = 2", key=key(), hidden="D = 2")
    (lone,) = voted([flip], TWO_OF_THREE)
    assert lone.told(text=True) == (
        "flip in too few repeats: 1 of 3 repeats show it, 2 are needed; 'secret' became 'word'; D = 2"
    )
    assert lone.told(text=False) == "flip in too few repeats: 1 of 3 repeats show it, 2 are needed; D = 2"
    twice = voted([flip, replace(flip, key=key(1))], TWO_OF_THREE)[0]
    assert twice.told(text=False) == "D = 2; 2 of 3 repeats show it, 2 are needed"
    plain = Finding(outcome=Outcome.NUMERIC, why="tokens agree")
    assert plain.told(text=False) == "tokens agree"


def test_a_target_that_repeats_every_bit_is_not_voted_about() -> None:
    once = findings(Outcome.FLIP)
    assert voted(once, Quorum()) == once


def differing(*moved: RepeatMovement) -> Comparison:
    keys = tuple(m.key for m in moved)
    return Comparison(order=("a",), identical=(key(), *keys), repeats_differ=keys, repeat_movements=moved)


def movement(size: float = 0.0, *, pair: float = 0.0, tokens: bool = True) -> RepeatMovement:
    return RepeatMovement(key=key(1), tokens_equal=tokens, mean_abs_logprob=size, max_pair=pair)


@pytest.mark.parametrize(
    ("moved", "kind"),
    [
        (movement(0.0599), VerdictKind.MATCH),  # within twice the canary's yardstick of 0.03, above its floor of 0.01
        (movement(0.0601), VerdictKind.UNSTABLE),
        (movement(pair=0.49), VerdictKind.MATCH),  # within twice F = 0.25, above twice the floor of 0.1
        (movement(pair=0.51), VerdictKind.UNSTABLE),
        (movement(tokens=False), VerdictKind.MATCH),  # one repeat that parts; two of three are asked for
    ],
)
def test_repeats_that_exceed_the_repeat_floor_are_unstable(moved: RepeatMovement, kind: VerdictKind) -> None:
    floor = RepeatFloor(repeats=3, pair=0.1, logprob=0.01, by_canary={"a": 0.01})
    below = replace(CALM, repeat=floor, quorum=TWO_OF_THREE, floors=FLOORS)
    assert judge(differing(moved), below, Policy()).kind is kind


def test_without_a_yardstick_the_repeat_floor_stands_alone() -> None:
    floor = RepeatFloor(repeats=3, pair=0.1, logprob=0.01, by_canary={"a": 0.01})
    assert not exceeds(movement(0.0199), floor)
    assert exceeds(movement(0.0201), floor)
    assert exceeds(movement(pair=0.21), floor)


def test_tokens_that_part_in_as_many_repeats_as_the_quorum_asks_are_unstable() -> None:
    floor = RepeatFloor(repeats=3)
    below = replace(CALM, repeat=floor, quorum=TWO_OF_THREE, floors=FLOORS)
    twice = [replace(movement(tokens=False), key=key(n)) for n in (1, 2)]
    assert judge(differing(*twice), below, Policy()).kind is VerdictKind.UNSTABLE


def test_on_a_bitwise_target_one_differing_bit_between_repeats_is_unstable() -> None:
    assert judge(differing(movement()), replace(CALM, repeat=RepeatFloor(repeats=3)), Policy()).kind is (
        VerdictKind.UNSTABLE
    )


def test_a_target_graded_unstable_may_part_tokens_as_it_did_at_blessing() -> None:
    floor = RepeatFloor(repeats=3, pair=0.1, logprob=0.01, by_canary={"a": 0.01}, tokens_differ=2)
    below = replace(CALM, repeat=floor, quorum=TWO_OF_THREE, floors=FLOORS)
    assert judge(differing(movement(tokens=False)), below, Policy()).kind is VerdictKind.MATCH


def heads() -> tuple[Head, Head]:
    """Two heads of three tokens that agree; log-probs differ by 0.1, 0.2, 0.3, the top pair by 0.5 at the last."""
    ids = np.asarray([1, 2, 3], np.int32)
    top = np.tile(np.asarray([[1, 2]], np.int32), (3, 1))
    logits = np.tile(np.asarray([[4.0, 3.0]], np.float32), (3, 1))
    first = replace(
        sample_head(n=3, k=2),
        output_ids=ids,
        logprob=np.asarray([-1, -1, -1], np.float32),
        topk_ids=top,
        topk_logits=logits,
    )
    moved = logits.copy()
    moved[2, 0] = 4.5
    other = replace(first, logprob=np.asarray([-1.1, -1.2, -1.3], np.float32), topk_logits=moved)
    return first, replace(other, digest=first.digest + np.uint64(1))


def test_the_repeat_floor_is_the_largest_movement_between_repeats_and_per_shape() -> None:
    first, other = heads()
    keys = [key(), key(1), key(canary="b"), key(canary="b", shape=Shape.PADDED)]
    pairs = [Pair(key=key(1), first=first, other=other), Pair(key=keys[3], first=first, other=other)]
    floor = repeat_floor(pairs, keys, 3)
    assert floor.by_canary == {"a": pytest.approx(0.2)}
    assert (floor.logprob, floor.pair, floor.tokens_differ) == (pytest.approx(0.1), pytest.approx(0.5), 0)
    assert floor.shapes["padded"] == {"executions": 1, "moved": 1, "parted": 0, "logprob": pytest.approx(0.2)}
    assert RepeatFloor.from_json(floor.to_json()) == floor
    assert floor.moved


def test_a_target_that_repeats_itself_has_a_floor_of_zero_that_raises_nothing() -> None:
    floor = repeat_floor([], [key(), key(1)], 3)
    assert (floor.moved, floor.logprob, floor.pair) == (False, 0.0, 0.0)
    assert FLOORS.at_least(floor) is FLOORS
    assert FLOORS.at_least(None) is FLOORS


def test_floors_never_fall_below_the_targets_own_repeats() -> None:
    raised = FLOORS.at_least(RepeatFloor(repeats=3, pair=0.5, logprob=0.01, by_canary={"a": 0.05, "b": 0.04}))
    assert (raised.pair, raised.logprob, dict(raised.by_canary)) == (0.5, 0.02, {"a": 0.05, "b": 0.04})


def test_only_what_differs_by_content_is_read() -> None:
    digests = {key(): "x", key(1): "x", key(2): "y", key(shape=Shape.PADDED): "z", key(1, shape=Shape.PADDED): "z"}
    asked = pairs_to_ask(list(digests), digests)
    assert asked == [(key(), key(2)), (key(), key(shape=Shape.PADDED))]
