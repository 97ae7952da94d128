"""The rounding yardstick: measured from perturbed scores, and what it makes of a tie, a flip and a shift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from store_samples import head
from verdict_samples import TIE

from driftpin.comparison.deviation import deviation
from driftpin.comparison.facts import Divergence, Movement, TraceComparison
from driftpin.comparison.tokens import unit_in_last_place
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.probe import Arm, Probe, Shape, TraceKey
from driftpin.trace.traceset import Trace
from driftpin.verdict.floors import Floors, Perturbed, RepeatFloor, floors_of
from driftpin.verdict.outcome import Outcome, trace_findings
from driftpin.workflow.bundled import BundledReference
from runner.engines.fake import FakeEngine
from runner.engines.perturbation import disturbed, units

CANARY = Canary(id="a", prompt="Once upon a time", settings=CanarySettings(max_new_tokens=12))
FLOORS = Floors(pair=0.25, logprob=0.02, by_canary={"a": 0.03}, blocks={}, samples=100, seeds=4)


@pytest.fixture
def engine() -> FakeEngine:
    made = FakeEngine(Recipe(engine="fake", model="f"), Arm.NATIVE, Suite(name="s", canaries=(CANARY,)))
    made.load()
    return made


def score(engine: FakeEngine, shape: Shape, seed: int = 0) -> Trace:
    rendered = engine.render(CANARY, None)
    tokens = engine.decode(TraceKey(canary="a", probe=Probe.DECODE), CANARY, rendered).head.output_ids.tolist()
    return engine.score(TraceKey(canary="a", probe=Probe.SCORE, shape=shape, repeat=seed), CANARY, rendered, tokens)


def outcome_of(at: Divergence | None, moved: float = 0.0, probe: Probe = Probe.DECODE) -> Outcome:
    movement = Movement(
        positions=9, moved=9, first_moved=0, mean_abs_logprob=moved, max_abs_logprob=moved, max_pair=moved
    )
    trace = TraceComparison(
        key=TraceKey(canary="a", probe=probe),
        identical=False,
        tokens_equal=at is None,
        divergence=at,
        movement=movement,
    )
    (finding,) = trace_findings(trace, FLOORS)
    return finding.outcome


def test_the_yardstick_is_the_noise_that_was_planted(engine: FakeEngine) -> None:
    plain = score(engine, Shape.ALONE)
    others = [score(engine, Shape.PERTURBED, seed) for seed in range(4)]
    pairs = [
        Perturbed(canary="a", head=plain.head, other=o.head, layers=plain.layers, other_layers=o.layers) for o in others
    ]
    floors = floors_of(pairs, 4)
    assert floors is not None
    # Each logit moves by one step of 2^-10, so a pair of them moves by none or by two steps.
    assert floors.pair == 2 / 1024
    assert 0 < floors.logprob < 2 / 1024
    assert floors.by_canary["a"] >= floors.logprob
    assert set(floors.blocks.values()) == {0.0}
    assert floors.samples == 4 * len(plain.head.output_ids)
    assert (floors.parting, floors.earliest) == ({"a": 0.0}, {})
    assert floors.far_parting == 0.0
    assert Floors.from_json(floors.to_json()) == floors


def test_without_perturbed_scores_there_are_no_floors() -> None:
    assert floors_of([], 0) is None
    assert Floors.from_json(None) is None


def heads(*moves: tuple[list[int], list[float], list[float]]) -> list[Perturbed]:
    """One canary's score of four tokens beside seeds of it, each: arg-maxes, their lead over id 9, |Δ log-prob|."""
    old = replace(head(n=4, k=2), logprob=np.zeros(4, np.float32))
    plain = replace(
        old, topk_ids=np.asarray([[1, 9]] * 4, np.int32), topk_logits=np.asarray([[2.0, 1.5]] * 4, np.float32)
    )
    pairs = []
    for tops, leads, moved in moves:
        ids = np.asarray([[top, 9 if top == 1 else 1] for top in tops], np.int32)
        logits = np.asarray([[2.0, 2.0 - lead] for lead in leads], np.float32)
        other = replace(
            plain,
            topk_ids=ids,
            topk_logits=logits,
            logprob=np.asarray(moved, np.float32),
            digest=old.digest + np.uint64(1),
        )
        pairs.append(Perturbed(canary="a", head=plain, other=other, layers=None, other_layers=None))
    return pairs


def test_blessing_measures_how_often_rounding_parts_a_text_and_takes_its_beginning_beyond_the_limit() -> None:
    calm, late = ([1] * 4, [0.5] * 4, [0.01] * 4), ([1, 1, 9, 1], [0.5, 0.5, 0.25, 0.5], [0.1, 0.0, 0.0, 0.0])
    floors = floors_of(heads(calm, calm, calm, late), 4)
    assert floors is not None
    assert (floors.parting, floors.earliest) == ({"a": 0.25}, {"a": 2})
    assert floors.far_parting == 0.0  # the pair moved by 0.5 - (-0.25), which is F itself
    assert floors.shift_limit("a") == pytest.approx(0.05)  # twice the largest seed: 0.1 over four tokens
    assert floors.beyond_yardstick == 3 / 16  # above 0.025
    assert floors.beyond == 1 / 16  # of the late seed the first beginning alone: 0.1, then 0.05, 0.033, 0.025


def test_the_earliest_of_the_seeds_that_part_a_text_counts_in_any_order() -> None:
    second, last = (([1] * n + [9] * (4 - n), [0.5] * 4, [0.01] * 4) for n in (2, 3))
    for order in ((second, last), (last, second)):
        floors = floors_of(heads(*order), 2)
        assert floors is not None
        assert floors.earliest == {"a": 2}


def test_a_jump_to_a_token_that_was_not_kept_is_far() -> None:
    pairs = heads(([1] * 4, [0.5] * 4, [0.01] * 4))
    jumped = replace(pairs[0].other, topk_ids=np.asarray([[1, 9], [7, 8], [1, 9], [1, 9]], np.int32))
    floors = floors_of([pairs[0], replace(pairs[0], other=jumped)], 2)
    assert floors is not None
    assert (floors.parting, floors.far_parting) == ({"a": 0.5}, 0.5)


def test_a_jump_is_never_far_below_twice_one_ulp_of_the_logit() -> None:
    """At 256 one unit in the last place of bfloat16 is 2, and the pair moves by 3."""
    pairs = heads(([9, 1, 1, 1], [1.0, 0.5, 0.5, 0.5], [0.01] * 4))
    raised = [
        replace(h, topk_logits=h.topk_logits + np.float32(254), dtype="bfloat16")
        for h in (pairs[0].head, pairs[0].other)
    ]
    old, new = (replace(h, topk_logits=h.topk_logits.copy()) for h in raised)
    old.topk_logits[0], new.topk_logits[0] = (257.0, 256.0), (258.0, 256.0)  # ids 1 and 9, then 9 and 1
    quiet = [replace(pairs[0], head=old, other=old)] * 2000
    floors = floors_of([*quiet, replace(pairs[0], head=old, other=new)], 2001)
    assert floors is not None
    assert (floors.pair, floors.far_parting) == (0.0, 0.0)


def test_what_a_later_version_measures_is_left_out() -> None:
    later = {"measured_later": {"a": 1}}
    assert Floors.from_json(FLOORS.to_json() | later) == FLOORS
    floor = RepeatFloor(repeats=3, pair=0.5)
    assert RepeatFloor.from_json(floor.to_json() | later) == floor
    reference = BundledReference.from_json({"absent": "turned off", "floors": None} | later)
    assert reference == BundledReference(absent="turned off")
    earlier = {
        n: v
        for n, v in FLOORS.to_json().items()
        if n not in ("parting", "earliest", "far_parting", "beyond", "beyond_yardstick")
    }
    assert Floors.from_json(earlier) == FLOORS


def test_a_divergence_within_f_between_two_arg_maxes_is_a_tie() -> None:
    assert outcome_of(TIE) is Outcome.TIE_FLIP
    assert outcome_of(replace(TIE, movement=0.25)) is Outcome.TIE_FLIP


@pytest.mark.parametrize(
    "change",
    [{"movement": 0.26}, {"both_top": False}, {"movement": None, "missing": "no logit was kept"}],
    ids=["beyond F", "not both arg-maxes", "movement unknown"],
)
def test_anything_else_is_a_flip(change: dict[str, object]) -> None:
    assert outcome_of(replace(TIE, **change)) is Outcome.FLIP


def test_f_is_never_below_one_ulp_of_the_logit() -> None:
    assert outcome_of(replace(TIE, movement=0.4, ulp=0.5)) is Outcome.TIE_FLIP


def test_a_score_above_twice_the_larger_yardstick_is_a_shift() -> None:
    assert outcome_of(None, 0.061, Probe.SCORE) is Outcome.SHIFTED
    assert outcome_of(None, 0.059, Probe.SCORE) is Outcome.NUMERIC
    assert outcome_of(None, 0.061, Probe.DECODE) is Outcome.NUMERIC


@pytest.mark.parametrize(
    ("value", "dtype", "ulp"),
    [(1.0, "bfloat16", 2**-7), (15.9, "bfloat16", 2**-4), (16.0, "float16", 2**-6), (1.5, "float32", 2**-23)],
)
def test_units_in_the_last_place(value: float, dtype: str, ulp: float) -> None:
    assert unit_in_last_place(value, dtype) == ulp


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_disturbance_moves_by_at_most_one_ulp_and_differs_by_seed(dtype: torch.dtype) -> None:
    states = torch.linspace(-3, 3, 600).to(dtype).reshape(1, 20, 30)
    first, again, other = disturbed(states, 0), disturbed(states, 0), disturbed(states, 1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    limit = states.double().abs() * torch.finfo(dtype).eps * 1.5
    assert bool(((first.double() - states.double()).abs() <= limit).all())
    assert np.abs(units(10_000, 3)).max() <= 1
    assert abs(units(10_000, 3).mean()) < 0.05


def test_deviation_is_zero_for_equal_states_and_relative_otherwise(engine: FakeEngine) -> None:
    layers = score(engine, Shape.ALONE).layers
    assert layers is not None
    assert {ratio for _, ratio in deviation(layers, layers)} == {0.0}
    doubled = replace(layers, sketch=layers.sketch * 2)
    assert {ratio for _, ratio in deviation(layers, doubled)} == {1.0}
    assert deviation(layers, replace(layers, sketch_positions=layers.sketch_positions + 1)) == ()
