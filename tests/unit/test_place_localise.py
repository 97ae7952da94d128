"""Which evidence a place is read off: arms, scores that reproduce their decode, bits or deviation, or none at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from driftpin.comparison.facts import (
    Comparison,
    Depth,
    Divergence,
    Movement,
    PromptDifference,
    Rerouted,
    Routing,
    TraceComparison,
)
from driftpin.environment.environment import Equality
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.floors import Floors
from driftpin.verdict.place import DECODE_ONLY, How, Place, localise

BLOCKS = tuple(f"layers.{n}" for n in range(4))
FLOORS = Floors(pair=0.25, logprob=0.1, by_canary={}, blocks=dict.fromkeys(BLOCKS, 0.01), samples=9, seeds=4)
MOVED = Movement(positions=9, moved=9, first_moved=0, mean_abs_logprob=0.05, max_abs_logprob=1, max_pair=1)
FLIP = Divergence(
    position=3,
    baseline_id=1,
    candidate_id=2,
    baseline_margin=2.0,
    candidate_margin=1.0,
    movement=3.0,
    missing=None,
    before="",
    baseline_text="x",
    candidate_text="y",
    both_top=True,
    ulp=0.0,
)
TIE = replace(FLIP, movement=0.2)


def depth(index: int | None, position: int | None = 5, **more: Any) -> Depth:
    block = None if index is None else BLOCKS[index]
    return Depth(block=block, index=index, blocks=4, position=position, ratio_rms=None, **more)


def deviating(index: int) -> tuple[tuple[str, float], ...]:
    """Quiet up to the block, then ten times the yardstick."""
    return tuple((block, 0.1 if n >= index else 0.005) for n, block in enumerate(BLOCKS))


def trace(canary: str = "a", probe: Probe = Probe.SCORE, **facts: Any) -> TraceComparison:
    made: dict[str, Any] = {"identical": False, "tokens_equal": True, "movement": MOVED, **facts}
    return TraceComparison(key=TraceKey(canary=canary, probe=probe), **made)


def decode(canary: str = "a", at: Divergence | None = FLIP, **facts: Any) -> TraceComparison:
    return trace(canary, Probe.DECODE, divergence=at, **facts)


def comparison(*traces: TraceComparison, identical: tuple[TraceKey, ...] = ()) -> Comparison:
    order = tuple(dict.fromkeys(t.key.canary for t in traces))
    return Comparison(order=order, changed=traces, identical=identical)


def same(*traces: TraceComparison, **more: Any) -> Place:
    found = localise(comparison(*traces, **more), Equality.SAME, FLOORS)
    assert found is not None
    return found


def other(*traces: TraceComparison, **more: Any) -> Place:
    found = localise(comparison(*traces, **more), Equality.DIFFERENT, FLOORS)
    assert found is not None
    return found


def test_nothing_moved_has_no_place() -> None:
    still = trace(identical=True)
    assert localise(comparison(still), Equality.SAME, FLOORS) is None
    moved = comparison(trace(depth=depth(1)))
    assert localise(comparison(still), Equality.SAME, FLOORS, reference=moved) is None


def test_the_same_stack_goes_by_bits_and_another_by_deviation() -> None:
    moved = trace(depth=depth(2), deviation=deviating(1))
    assert (same(moved).block, same(moved).how, same(moved).arm) == ("layers.2", How.BITS, "native")
    assert (other(moved).block, other(moved).how) == ("layers.1", How.DEVIATION)


def test_by_bits_most_executions_decide_and_an_earlier_block_is_told() -> None:
    place = same(trace("a", depth=depth(2)), trace("b", depth=depth(2, 3)), trace("c", depth=depth(1)))
    assert (place.block, place.index, place.position, place.canary) == ("layers.2", 2, 3, "b")
    assert (place.agreeing, place.asked) == (2, 3)
    assert place.sentence == (
        "the difference enters in layers.2 (block 3 of 4); 2 of 3 executions say so, 1 an earlier one (layers.1)"
    )


def test_the_reference_arm_is_asked_first() -> None:
    native = comparison(trace(depth=depth(0), deviation=deviating(3)))
    reference = comparison(trace(depth=depth(1), deviation=deviating(2)))
    given: dict[str, Any] = {"reference": reference, "reference_floors": FLOORS}
    place = localise(native, Equality.DIFFERENT, FLOORS, **given)
    assert place is not None
    assert (place.arm, place.block, place.how) == ("reference", "layers.2", How.DEVIATION)
    by_bits = localise(native, Equality.DIFFERENT, FLOORS, **given, reference_stack=Equality.SAME)
    assert by_bits is not None
    assert (by_bits.arm, by_bits.block, by_bits.how) == ("reference", "layers.1", How.BITS)


def test_a_calm_reference_leaves_the_word_to_the_native_arm() -> None:
    native = comparison(trace(depth=depth(0), deviation=deviating(3)))
    calm = comparison(trace(depth=depth(0), deviation=deviating(4)))  # moved by less than its yardstick
    for reference in (calm, comparison(trace(identical=True))):
        place = localise(native, Equality.DIFFERENT, FLOORS, reference=reference, reference_floors=FLOORS)
        assert place is not None
        assert (place.arm, place.block) == ("native", "layers.3")


def test_a_choice_is_no_place_in_the_model_whatever_the_reference_says() -> None:
    still = replace(MOVED, moved=0, first_moved=None)
    native = comparison(decode(movement=still))
    place = localise(native, Equality.SAME, FLOORS, reference=comparison(trace(depth=depth(1))))
    assert place is not None
    assert (place.found, place.block, place.how, place.arm) == (True, None, How.CHOICE, "native")


def test_a_choice_is_told_from_rounding_on_another_stack() -> None:
    """A penalty came with an upgrade: the pair moved by less than F, but what was emitted is no arg-max."""
    chosen = replace(FLIP, movement=0.1, both_top=False)
    place = other(decode(at=chosen), trace(deviation=deviating(4), reproduces=False))
    assert (place.found, place.how) == (True, How.CHOICE)
    assert "they agree but for rounding up to the divergence" in place.sentence
    assert place.sentence.endswith("beside it, no block stands out above its rounding yardstick: rounding throughout")
    both = other(decode(at=chosen), trace(deviation=deviating(2)))
    assert (both.block, both.how) == ("layers.2", How.DEVIATION)
    far = other(decode(at=replace(chosen, movement=3.0)), trace(deviation=deviating(4), reproduces=False))
    assert far.sentence == f"not localisable: {DECODE_ONLY}"


def test_a_score_that_does_not_reproduce_its_decode_is_not_believed() -> None:
    """The score moved by rounding in block 0; the decode's own bits part in block 3."""
    flipped, score = decode(depth=depth(3)), trace(depth=depth(0), reproduces=False)
    place = same(flipped, score)
    assert (place.block, place.how) == ("layers.3", How.BITS)
    assert place.sentence.endswith(DECODE_ONLY)
    assert same(flipped, replace(score, reproduces=True)).block == "layers.0"


def test_on_another_stack_a_decode_only_divergence_is_not_localisable() -> None:
    place = other(decode(depth=depth(3)), trace(depth=depth(0), deviation=deviating(1), reproduces=False))
    assert (place.found, place.sentence) == (False, f"not localisable: {DECODE_ONLY}")


def test_one_canary_that_reproduces_is_enough_and_the_others_are_left_out() -> None:
    place = other(
        *(decode("a"), trace("a", deviation=deviating(1), reproduces=False)),
        *(decode("b"), trace("b", deviation=deviating(2), reproduces=True)),
    )
    assert (place.block, place.asked) == ("layers.2", 1)


def test_scores_equal_in_every_bit_leave_it_to_the_decode() -> None:
    """A low-precision cache on the same stack: a score has no cache."""
    score = TraceKey(canary="a", probe=Probe.SCORE)
    place = same(decode(at=None, depth=depth(0, 40)), identical=(score,))
    assert (place.block, place.position) == ("layers.0", 40)
    assert place.sentence.endswith(DECODE_ONLY)
    by_logits = same(decode(depth=depth(0, 40)), trace("a", identical=True))
    assert by_logits.sentence.endswith(DECODE_ONLY)


def test_a_tie_flip_needs_no_score_that_repeats_it() -> None:
    """On another stack rounding turns ties in the decode; calling the cache guilty would be crying wolf."""
    place = other(decode(at=TIE), trace(deviation=deviating(4), reproduces=False))
    assert place.sentence == "no block stands out above its rounding yardstick: rounding throughout"


def test_a_replay_without_scores_goes_by_the_decodes_bits() -> None:
    assert same(decode(depth=depth(1, None))).block == "layers.1"


def test_an_undetermined_stack_trusts_bits_unless_they_accuse_the_first_block() -> None:
    def place(moved: TraceComparison) -> Place:
        found = localise(comparison(moved), Equality.UNDETERMINED, FLOORS)
        assert found is not None
        return found

    assert place(trace(depth=depth(2), deviation=deviating(4))).block == "layers.2"
    assert place(trace(depth=depth(0), deviation=deviating(3))).block == "layers.3"
    quiet = place(trace(depth=depth(0), deviation=deviating(4)))
    assert not quiet.found
    assert "whether it is the same is undetermined" in quiet.sentence


def test_experts_that_differ_where_the_input_agrees_are_the_router_itself() -> None:
    routing = Routing(
        positions=9,
        changed=(
            Rerouted(module="layers.1.mlp", position=5, count=4),
            Rerouted(module="layers.3.mlp", position=6, count=9),
        ),
    )
    place = same(trace(depth=depth(1, 5), routing=routing))
    assert (place.block, place.position, place.how, place.label) == ("layers.1", 5, How.ROUTER, "router")
    assert "its router layers.1.mlp chose other experts there although what enters the block agrees" in place.sentence
    later = same(trace(depth=depth(0, 2), routing=routing))
    assert (later.block, later.how, later.label) == ("layers.0", How.BITS, "router")
    assert "the first other choice of experts is in layers.1.mlp at position 5" in later.sentence


def test_another_number_of_blocks_is_said_with_the_path_where_they_part() -> None:
    note = "the two models have different blocks: 4 before, 3 now"
    place = same(trace(depth=depth(2, note=note), deviation=deviating(2)))
    assert (place.block, note in place.sentence) == ("layers.2", True)
    assert note in other(trace(depth=depth(0, note=note), deviation=deviating(2))).sentence
    last = same(trace(depth=depth(None, note=note)))
    assert f"behind the last block that both have ({note}" in last.sentence


@pytest.mark.parametrize(
    "reason",
    [
        "the candidate has no layers: a compiled or graph-captured model is recorded without layer hooks",
        "the hidden states were bfloat16 of width 64 before and are float32 of width 64 now",
    ],
)
def test_not_localisable_always_has_its_reason(reason: str) -> None:
    bare = trace(depth_absent=reason)
    assert same(bare).sentence == f"not localisable: {reason}"
    assert reason in other(bare).sentence
    assert same(trace()).sentence == "not localisable: no layers were recorded"


def test_a_changed_input_is_the_reason_where_nothing_was_comparable() -> None:
    prompt = PromptDifference(index=0, baseline_ids=(1,), candidate_ids=(2,), lengths=(3, 3), text_differs=True)
    asked = trace(prompt=prompt)
    assert "the input changed" in same(asked).sentence
    assert "declared differently" in same(trace(mismatched=("k: 20 in the baseline, 5 in the candidate",))).sentence
    rest = TraceKey(canary="b", probe=Probe.SCORE)
    assert localise(comparison(asked, identical=(rest,)), Equality.SAME, FLOORS) is None
    assert same(asked, trace("b", depth=depth(1))).block == "layers.1"
