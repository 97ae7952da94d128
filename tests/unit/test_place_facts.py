"""What localisation reads: sinks of the baseline, deviations without them, expert choices, scores that reproduce."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driftpin.comparison.deviation import deviation
from driftpin.comparison.facts import Divergence, Rerouted, Routing, TraceComparison
from driftpin.comparison.reproduction import reproduces, with_reproduction
from driftpin.comparison.routing import routing
from driftpin.comparison.sinks import sinks, sketched_sinks
from driftpin.trace import sketch
from driftpin.trace.head import Declaration, Head
from driftpin.trace.layers import Layers, quantise
from driftpin.trace.probe import Arm, Probe, Shape, StopReason, TraceKey

BLOCKS = ("layers.0", "layers.1")
POSITIONS = 8
SKETCHED = np.array([0, 2, 5, 7], dtype=np.int32)
DELIMITER = 5  # a position with massive activations, as models put them on delimiters


def layers(states: np.ndarray, first: int = 0, experts: np.ndarray | None = None) -> Layers:
    """From hidden states [2, 8, hidden]."""
    sums = np.einsum("lph,kh->lpk", states[:, SKETCHED], sketch.signs(states.shape[-1])).astype(np.float32)
    chosen = np.zeros((2, POSITIONS), np.uint32) if experts is None else experts
    return Layers(
        blocks=BLOCKS,
        dtype="float32",
        hidden=states.shape[-1],
        first_position=first,
        root="00" * 32,
        cells=np.zeros((2, POSITIONS), np.uint32),
        rms=quantise(np.sqrt((states**2).mean(-1))),
        absmax=quantise(np.abs(states).max(-1)),
        nonfinite=np.zeros((2, POSITIONS), np.int32),
        prefill=np.zeros(0, np.uint64),
        sketch=sums,
        sketch_positions=SKETCHED + first,
        expert_blocks=("layers.0.mlp", "layers.1.mlp"),
        experts=chosen,
    )


def states(sink: float = 500.0) -> np.ndarray:
    """Ordinary states of size one, with two sinks in the second block: the first position and a delimiter."""
    made = np.random.default_rng(3).standard_normal((2, POSITIONS, 64))
    made[1, [0, DELIMITER]] *= sink
    return made


def test_sinks_are_the_first_position_and_what_is_huge_in_any_block() -> None:
    assert np.flatnonzero(sinks(layers(states()))).tolist() == [0, DELIMITER]
    assert np.flatnonzero(sinks(layers(states(sink=2.0)))).tolist() == [0]
    assert np.flatnonzero(sinks(layers(states(sink=2.0), first=4))).tolist() == []  # a recording that begins later
    assert sketched_sinks(layers(states())).tolist() == [True, False, True, False]


def test_a_sink_neither_hides_the_others_nor_counts_itself() -> None:
    old, new = states(), states()
    new[1, 2] *= 1.3  # an ordinary position moved
    new[1, DELIMITER] *= 1.0001  # the sink moved by little, which is much in absolute terms
    found = dict(deviation(layers(old), layers(new)))
    assert found["layers.0"] == 0.0
    assert found["layers.1"] == pytest.approx(0.3 / np.sqrt(2), rel=0.4)  # one of two positions; sketch of eight sums


def test_a_candidate_cannot_hide_behind_a_sink_of_its_own() -> None:
    new = states()
    new[1, 2] *= 500.0
    assert dict(deviation(layers(states()), layers(new)))["layers.1"] > 100


def test_without_any_ordinary_position_there_is_no_deviation() -> None:
    only = replace(
        layers(states()),
        sketch_positions=np.array([0], np.int32),
        sketch=layers(states()).sketch[:, :1],
    )
    assert deviation(only, only) == ()
    assert sketched_sinks(only).tolist() == [True]


def test_states_that_became_non_finite_deviate_infinitely() -> None:
    new = layers(states())
    broken = replace(new, sketch=np.where(np.arange(4)[None, :, None] == 1, np.float32("nan"), new.sketch))
    assert dict(deviation(new, broken))["layers.1"] == np.inf


def test_a_removed_block_leaves_the_deviation_of_the_others() -> None:
    whole = layers(states())
    one = replace(
        whole,
        blocks=BLOCKS[:1],
        **{n: getattr(whole, n)[1:] for n in ("cells", "rms", "absmax", "nonfinite", "sketch")},
    )
    ((block, ratio),) = deviation(whole, one)  # the second block's states now stand at the first one's path
    assert (block, ratio > 0.5) == ("layers.0", True)


def test_expert_choices_are_told_by_router_first_position_and_count() -> None:
    old = np.zeros((2, POSITIONS), np.uint32)
    new = old.copy()
    new[1, [3, 4]], new[0, [4, 6, 7]] = 1, 1
    found = routing(layers(states(), experts=old), layers(states(), experts=new))
    assert found == Routing(
        positions=POSITIONS,
        changed=(
            Rerouted(module="layers.0.mlp", position=4, count=3),
            Rerouted(module="layers.1.mlp", position=3, count=2),
        ),
    )
    assert found.first.module == "layers.1.mlp"
    assert found.inside("layers.0") == found.changed[0]
    assert found.inside("layers.10") is None
    assert found.inside("layers") == found.changed[0]
    renamed = replace(layers(states(), experts=new), expert_blocks=("layers.0.moe", "layers.1.moe"))
    assert routing(layers(states(), experts=old), renamed) == found
    early = routing(layers(states(), experts=old), layers(states(), experts=new), until=4)
    assert early is not None
    assert [one.module for one in early.changed] == ["layers.1.mlp"]
    assert routing(layers(states(), experts=old), layers(states(), experts=old)) is None


def head(probe: Probe, *rows: dict[int, float]) -> Head:
    """One position per row of logits by id; the emitted id of a decode is its best one."""
    ids = np.array([sorted(row, key=lambda i: (-row[i], i)) for row in rows], np.int32)
    logits = np.array([[row[i] for i in order] for row, order in zip(rows, ids.tolist(), strict=True)], np.float32)
    count = len(rows)
    return Head(
        declared=Declaration(
            probe=probe, arm=Arm.NATIVE, shape=Shape.ALONE, batch="rows=1", cache="none", token_limit=9, k=ids.shape[1]
        ),
        stop=StopReason.LENGTH,
        dtype="float32",
        vocab=9,
        prompt_ids=np.array([1], np.int32),
        output_ids=ids[:, 0],
        logprob=np.zeros(count, np.float32),
        margin=np.zeros(count, np.float32),
        entropy=np.zeros(count, np.float32),
        logsumexp=np.zeros(count, np.float32),
        topk_ids=ids,
        topk_logits=logits,
        boundary_ties=np.zeros(count, np.int32),
        digest=np.zeros(count, np.uint64),
        nonfinite=np.zeros(count, np.int32),
        greedy=np.ones(count, np.uint8),
    )


AT = Divergence(
    position=1,
    baseline_id=7,
    candidate_id=8,
    baseline_margin=1.0,
    candidate_margin=1.0,
    movement=4.0,
    missing=None,
    before="",
    baseline_text="",
    candidate_text="",
)
SAME = {7: 3.0, 8: 2.0}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({7: 2.0, 8: 3.0}, True),  # it chooses the candidate's token
        ({7: 3.0, 8: 2.9}, False),  # moved by 0.9 of D = 4: rounding, say
        ({7: 4.0, 8: 1.0}, True),  # the pair moved by half of D, whichever way
        ({7: 3.0, 6: 2.0}, False),  # the candidate's token is not even kept
    ],
)
def test_a_score_reproduces_by_its_choice_or_by_half_of_d(row: dict[int, float], expected: bool) -> None:
    old, new = head(Probe.SCORE, SAME, SAME), head(Probe.SCORE, SAME, row)
    assert reproduces(AT, old, new) is expected


def test_a_score_that_always_chose_the_candidates_token_shows_nothing_by_it() -> None:
    """Decode and score differ on the baseline too, at a near-tie: only what moved counts."""
    turned = {7: 2.0, 8: 2.1}
    assert reproduces(AT, head(Probe.SCORE, SAME, turned), head(Probe.SCORE, SAME, turned)) is False


def test_a_score_that_does_not_reach_the_divergence_says_nothing() -> None:
    short = head(Probe.SCORE, SAME)
    assert reproduces(AT, short, short) is None
    assert (
        reproduces(replace(AT, candidate_id=None), head(Probe.SCORE, SAME, SAME), head(Probe.SCORE, SAME, SAME)) is None
    )


def test_each_score_is_told_by_the_decode_of_its_own_canary_and_shape() -> None:
    def trace(probe: Probe, shape: Shape, at: Divergence | None) -> TraceComparison:
        key = TraceKey(canary="a", probe=probe, shape=shape)
        return TraceComparison(key=key, identical=False, tokens_equal=at is None, divergence=at)

    given = [
        trace(Probe.DECODE, Shape.ALONE, AT),
        trace(Probe.DECODE, Shape.PADDED, None),
        trace(Probe.SCORE, Shape.ALONE, None),
        trace(Probe.SCORE, Shape.PADDED, None),
    ]
    pair = head(Probe.SCORE, SAME, SAME), head(Probe.SCORE, SAME, {7: 2.0, 8: 3.0})
    told = with_reproduction(given, {t.key: pair for t in given if t.key.probe is Probe.SCORE})
    assert [t.reproduces for t in told] == [None, None, True, None]
