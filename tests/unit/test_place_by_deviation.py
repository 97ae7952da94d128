"""The block of entry on another stack: where the ratio of deviation to yardstick jumps, in enough canaries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from driftpin.comparison.facts import Movement, Rerouted, Routing, TraceComparison
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.floors import Floors
from driftpin.verdict.place_by_deviation import ROUNDING, by_deviation, entry
from driftpin.verdict.place_value import How, Place

BLOCKS = tuple(f"layers.{n}" for n in range(12))  # more than ten: their names do not sort as they stand
YARDSTICK = {block: 0.01 * (1 + n) for n, block in enumerate(BLOCKS)}  # it grows with depth
FLOORS = Floors(pair=1.0, logprob=0.1, by_canary={}, blocks=YARDSTICK, samples=9, seeds=4)
QUIET = (0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.9, 1.0, 1.1, 1.0, 1.0, 1.0)
FAULT_AT_7 = (*QUIET[:7], 9.0, 8.0, 7.0, 6.0, 5.0)


def scored(
    canary: str, ratios: Sequence[float], *, routing: Routing | None = None, logprob: float = 0.05, sinks: int = 1
) -> TraceComparison:
    """A score whose states moved by `ratios` of the yardstick."""
    deviation = tuple((b, r * YARDSTICK[b]) for b, r in zip(BLOCKS, ratios, strict=False))
    moved = Movement(positions=9, moved=9, first_moved=0, mean_abs_logprob=logprob, max_abs_logprob=1, max_pair=1)
    return TraceComparison(
        key=TraceKey(canary=canary, probe=Probe.SCORE),
        identical=False,
        tokens_equal=True,
        deviation=deviation,
        movement=moved,
        routing=routing,
        sinks=sinks,
    )


def found(*rows: Sequence[float], floors: Floors | None = FLOORS) -> Place:
    return by_deviation([scored(f"c{n}", row) for n, row in enumerate(rows)], floors)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        (QUIET, None),
        (FAULT_AT_7, 7),
        ((3.5, 3.4, 3.2, 3.1), 0),  # over the yardstick itself it jumped in the first block
        ((1.0, 1.5, 2.2, 2.8, 3.1, 3.4, 60.0, 50.0), 6),  # rounding adds up and passes 3 before the fault
        ((3.5, 3.5, 3.5, 3.5, 60.0, 50.0), 4),  # a coarse kernel everywhere, and the fault
        ((1.0, 8.0, 40.0, 40.0), 1),  # a later amplification is an echo
        ((1.0, 1.4, 1.9, 2.5, 3.2, 4.0, 5.0), None),  # creeps up: no one block
        ((1.0, 1.0, 3.01, 1.0), 2),
        ((1.0, 1.0, 3.0, 1.0), None),  # exactly three does not exceed three
        ((), None),
    ],
)
def test_the_entry_is_where_the_ratio_jumps(ratios: Sequence[float], expected: int | None) -> None:
    assert entry(ratios) == expected


def test_the_place_with_its_evidence() -> None:
    place = found(FAULT_AT_7, FAULT_AT_7, FAULT_AT_7)
    assert (place.found, place.block, place.index, place.blocks) == (True, "layers.7", 7, 12)
    assert (place.agreeing, place.asked, place.how, place.label) == (3, 3, How.DEVIATION, None)
    assert place.sentence == (
        "the difference enters in layers.7 (block 8 of 12): 9.0 times its rounding yardstick, within it before; "
        "3 of 3 scored canaries say so (3 attention-sink positions left out)"
    )


def test_blocks_keep_their_order_when_a_stored_yardstick_lost_it() -> None:
    """Canonical JSON sorts keys: layers.10 would stand before layers.2."""
    stored = Floors(**{**vars(FLOORS), "blocks": dict(sorted(YARDSTICK.items()))})
    place = found((*QUIET[:9], 9.0, 9.0, 9.0), floors=stored)
    assert (place.block, place.index) == ("layers.9", 9)


def test_benign_rounding_accuses_no_block() -> None:
    place = found(QUIET, QUIET)
    assert (place.found, place.block) == (False, None)
    assert place.sentence == f"{ROUNDING} (2 attention-sink positions left out)"


def test_a_fault_in_few_canaries_is_not_lost_in_the_median() -> None:
    """An expert that one prompt in eight reaches: the median never moves."""
    far = (*QUIET[:4], *(20.0,) * 8)
    place = found(far, *(QUIET,) * 7)
    assert (place.block, place.agreeing, place.asked) == ("layers.4", 1, 8)


def test_one_canary_a_little_outside_is_no_fault() -> None:
    assert not found((*QUIET[:4], *(4.0,) * 8), *(QUIET,) * 7).found
    assert found((*QUIET[:4], *(4.0,) * 8), *(QUIET,) * 3).found  # one of four is a quarter


def test_most_canaries_decide_and_the_earlier_block_of_equals() -> None:
    one, two = (*QUIET[:4], *(9.0,) * 8), (*QUIET[:6], *(9.0,) * 6)
    assert found(one, two, two).block == "layers.6"
    assert found(one, two).block == "layers.4"


def test_a_yardstick_of_zero_takes_the_smallest_other_one() -> None:
    """float32 on a tiny model: rounding did not move the first block at all."""
    floors = Floors(**{**vars(FLOORS), "blocks": {**YARDSTICK, "layers.0": 0.0}})
    assert not found(QUIET, floors=floors).found
    assert found((9.0, *(9.0,) * 11), floors=floors).block == "layers.0"


def test_all_yardsticks_zero_leave_the_resolution_of_the_record() -> None:
    floors = Floors(**{**vars(FLOORS), "blocks": dict.fromkeys(BLOCKS, 0.0)})
    assert found((0.0, 0.0, *(1.0,) * 10), floors=floors).block == "layers.2"
    assert not found((0.0,) * 12, floors=floors).found


def test_a_state_that_became_infinite_is_a_place() -> None:
    assert found((*QUIET[:3], *(float("inf"),) * 9)).block == "layers.3"


def test_a_creeping_ratio_accuses_no_one_block_and_says_from_where() -> None:
    creeping = tuple(1.3**n for n in range(12))  # passes 3 at index 5
    place = found(creeping, creeping)
    assert not place.found
    assert "little by little, from layers.5 on; no one block does it" in place.sentence


def test_log_probabilities_that_move_behind_quiet_blocks_point_to_the_head() -> None:
    traces = [scored(f"c{n}", QUIET, logprob=0.21) for n in range(3)]  # above twice the yardstick of 0.1
    place = by_deviation(traces, FLOORS)
    assert not place.found
    assert "behind the last block (final norm or head); 3 of 3" in place.sentence
    assert "rounding throughout" in by_deviation([scored("c", QUIET, logprob=0.19)], FLOORS).sentence


@pytest.mark.parametrize("floors", [None, Floors(**{**vars(FLOORS), "blocks": {}})])
def test_without_a_yardstick_nothing_is_said(floors: Floors | None) -> None:
    place = found(FAULT_AT_7, floors=floors)
    assert place.sentence == (
        "not localisable: the stack changed, and the baseline has no rounding yardstick per block"
    )


def test_without_states_the_reason_is_passed_on() -> None:
    bare = TraceComparison(
        key=TraceKey(canary="c", probe=Probe.SCORE),
        identical=False,
        tokens_equal=True,
        depth_absent="the candidate has no layers: a compiled or graph-captured model is recorded without layer hooks",
    )
    assert "recorded without layer hooks" in by_deviation([bare], FLOORS).sentence


def routed(block: int, count: int, positions: int = 40) -> Routing:
    module = f"layers.{block}.mlp"
    return Routing(positions=positions, changed=(Rerouted(module=module, position=6, count=count),))


def test_a_router_that_chose_otherwise_labels_the_entry() -> None:
    traces = [scored(f"c{n}", FAULT_AT_7, routing=routed(7, 20)) for n in range(3)]
    place = by_deviation(traces, FLOORS)
    assert (place.block, place.label, place.position) == ("layers.7", "router", 6)
    assert "its router layers.7.mlp chose other experts first at position 6" in place.sentence


def test_experts_that_changed_behind_the_entry_are_its_consequence() -> None:
    traces = [scored(f"c{n}", FAULT_AT_7, routing=routed(9, 20)) for n in range(3)]
    assert by_deviation(traces, FLOORS).label is None


def test_a_router_tie_in_one_canary_is_rounding_and_said() -> None:
    """In float32 one other expert stands out by thousands although a near-tie alone did it."""
    flipped = scored("c0", (*QUIET[:7], *(5000.0,) * 5), routing=routed(7, 1))
    place = by_deviation([flipped, *(scored(f"c{n}", QUIET) for n in range(1, 8))], FLOORS)
    assert not place.found
    assert "other experts were chosen in 1 of 8 canaries, first in layers.7.mlp at position 6" in place.sentence
    assert "near a router's tie, as rounding does it" in place.sentence
    many = scored("c0", (*QUIET[:7], *(5000.0,) * 5), routing=routed(7, 20))
    assert by_deviation([many, *(scored(f"c{n}", QUIET) for n in range(1, 8))], FLOORS).block == "layers.7"


def test_routers_that_chose_otherwise_all_over_the_text_are_not_called_a_tie() -> None:
    traces = [scored(f"c{n}", QUIET, routing=routed(7, 40)) for n in range(4)]
    place = by_deviation(traces, FLOORS)
    assert not place.found
    assert "at more positions than rounding does it" in place.sentence
    assert "a router's tie" not in place.sentence
    assert "rounding throughout" not in place.sentence
