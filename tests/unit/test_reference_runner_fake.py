"""The fake engine's two arms, and the faults that it takes: what each moves, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driftpin.errors import CannotMeasureError, ConfigError
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.head import Head
from driftpin.trace.probe import Arm, Probe, Shape, TraceKey
from runner.engines.fake_model import FINER, GRID
from runner.engines.protocol import Engine
from runner.engines.registry import build

CANARY = Canary(id="a", prompt="Once upon a time", settings=CanarySettings(max_new_tokens=16))
TOKENS = [*b" a long tale of "]
STEP = 1 / GRID


def engine(arm: Arm = Arm.NATIVE, **faults: Any) -> Engine:
    recipe = Recipe(engine="fake", model="f", options={"faults": faults})
    made = build(recipe, arm, Suite(name="s", canaries=(CANARY,)))
    made.load()
    return made


def score(arm: Arm = Arm.NATIVE, shape: Shape = Shape.ALONE, **faults: Any) -> Head:
    made = engine(arm, **faults)
    key = TraceKey(canary="a", probe=Probe.SCORE, shape=shape)
    return made.score(key, CANARY, made.render(CANARY, None), TOKENS).head


def moved(a: Head, b: Head) -> np.ndarray[Any, Any]:
    """|Δ logit| of the ids that are in both top-k."""
    pairs = []
    for ids, logits, other_ids, other_logits in zip(a.topk_ids, a.topk_logits, b.topk_ids, b.topk_logits, strict=True):
        known = dict(zip(other_ids.tolist(), other_logits.tolist(), strict=True))
        pairs += [value - known[i] for i, value in zip(ids.tolist(), logits.tolist(), strict=True) if i in known]
    return np.abs(np.asarray(pairs))


def test_the_native_arm_differs_from_its_reference_by_its_own_rounding() -> None:
    native, reference = score(), score(Arm.REFERENCE)
    assert set(moved(native, reference)) == {0.0, STEP}
    assert 0 < float(np.abs(native.logprob - reference.logprob).mean()) < STEP
    assert (native.declared.arm, reference.declared.arm) == (Arm.NATIVE, Arm.REFERENCE)


@pytest.mark.parametrize(
    "fault", [{"rounding": 3}, {"native_noise": {"by": 0.5}}, {"logit_noise": 0.5}, {"flaky": True}], ids=str
)
def test_a_fault_of_the_native_path_leaves_the_reference_alone(fault: dict[str, Any]) -> None:
    assert score(**fault).digest.tolist() != score().digest.tolist()
    assert score(Arm.REFERENCE, **fault).to_bytes() == score(Arm.REFERENCE).to_bytes()


@pytest.mark.parametrize(
    "fault", [{"weight": {"block": 1, "by": 1}}, {"nan": {"block": 2}}, {"one_token": 97}], ids=str
)
def test_a_damaged_model_shows_in_both_arms(fault: dict[str, Any]) -> None:
    for arm in Arm:
        assert score(arm, **fault).digest.tolist() != score(arm).digest.tolist()


def test_another_tokenizer_shows_in_both_arms() -> None:
    digits = Canary(id="d", prompt="2 + 2")
    for arm in Arm:
        assert engine(arm, tokenizer="digits").render(digits, None) != engine(arm).render(digits, None)


def test_another_rounding_moves_as_far_from_the_reference_as_the_own_one() -> None:
    reference = score(Arm.REFERENCE)
    assert set(moved(score(rounding=3), score())) == {0.0, STEP}
    distances = [float(np.abs(score(rounding=seed).logprob - reference.logprob).mean()) for seed in range(8)]
    assert max(distances) < 2 * min(distances)


def test_noise_of_the_native_path_stands_out_from_its_rounding() -> None:
    assert moved(score(native_noise={"by": 0.5}), score()).min() == 0.5


def test_each_arm_has_a_yardstick_of_its_own_size() -> None:
    assert set(moved(score(shape=Shape.PERTURBED), score())) == {STEP}
    disturbed = score(Arm.REFERENCE, Shape.PERTURBED)
    assert set(moved(disturbed, score(Arm.REFERENCE))) == {STEP / FINER}


def test_a_decode_and_a_score_see_the_same_logits() -> None:
    made = engine()
    rendered = made.render(CANARY, None)
    decoded = made.decode(TraceKey(canary="a", probe=Probe.DECODE), CANARY, rendered).head
    tokens = decoded.output_ids.tolist()
    scored = made.score(TraceKey(canary="a", probe=Probe.SCORE), CANARY, rendered, tokens).head
    assert scored.digest.tolist() == decoded.digest.tolist()


def test_microprobes_see_another_rounding_and_no_defect_elsewhere() -> None:
    plain = engine().environment().behaviour
    assert engine(rounding=1).environment().behaviour != plain
    assert engine(native_noise={"by": 0.5}).environment().behaviour == plain


def test_the_reference_arm_does_not_decode() -> None:
    made = engine(Arm.REFERENCE)
    with pytest.raises(CannotMeasureError, match="does not decode"):
        made.decode(TraceKey(canary="a", probe=Probe.DECODE), CANARY, made.render(CANARY, None))


@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        ({"wieght": {"block": 1}}, r"faults.wieght: unknown. Known faults are: weight, nan, .*rounding"),
        ({"weight": {"block": 4}}, r"faults.weight.block: input should be less than 4"),
        ({"weight": 3}, r"faults.weight: input should be a valid dictionary"),
        ({"weight": {"block": 1, "bye": 1}}, r"faults.weight.bye: unknown"),
        ({"native_noise": 0.5}, r"faults.native_noise: input"),
        ({"native_noise": {"by": float("nan")}}, r"faults.native_noise.by: input should be a finite number"),
        ({"rounding": True}, r"faults.rounding: input should be a valid integer"),
        ({"flaky": "often"}, r"faults.flaky: input should be True or 'process'"),
        ({"slow": "1"}, r"faults.slow"),
        ({"facts": {"weights": {}}}, r"faults.facts.weights"),
        ({"a": 1, "b": 2}, r"faults.a: unknown; faults.b: unknown"),
    ],
    ids=str,
)
def test_faults_that_it_does_not_know_are_refused(faults: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        engine(**faults)


def test_faults_that_are_no_table_are_refused() -> None:
    recipe = Recipe(engine="fake", model="f", options={"faults": "weight"})
    with pytest.raises(ConfigError, match="faults: input should be a valid dictionary"):
        build(recipe, Arm.NATIVE, Suite(name="s", canaries=(CANARY,)))


@pytest.mark.parametrize("name", ["fake", "transformers"])
def test_unknown_options_and_ways_are_refused(name: str) -> None:
    suite = Suite(name="s", canaries=(CANARY,))
    with pytest.raises(ConfigError, match=r"no option fault\. Known: reference"):
        build(Recipe(engine=name, model="f", options={"fault": {}}), Arm.NATIVE, suite)
    with pytest.raises(ConfigError, match=r"options\.reference is 'half'.*whole.* or .*block_by_block"):
        build(Recipe(engine=name, model="f", options={"reference": "half"}), Arm.NATIVE, suite)
    build(Recipe(engine=name, model="f", options={"reference": "block_by_block"}), Arm.NATIVE, suite)
