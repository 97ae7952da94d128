"""A canary's bits do not depend on which ran before it, where the model itself would remember the longest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from replaying import kept_process_state
from tiny_models import tiny_llama

from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.probe import Arm, Probe, TraceKey
from runner.engines.remembered import Remembered
from runner.engines.transformers import TransformersEngine

MIDDLE = Canary(id="middle", prompt="tell me more " * 6, settings=CanarySettings(max_new_tokens=4))
LONG = Canary(id="long", prompt="tell me more " * 12, settings=CanarySettings(max_new_tokens=4))
SUITE = Suite(name="s", canaries=(MIDDLE, LONG))
ROPES = {
    "dynamic": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0},
    "default": {"rope_type": "default", "rope_theta": 10000.0},
}


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


def engine(folder: Path, kind: str) -> TransformersEngine:
    tiny_llama(folder, max_position_embeddings=32, rope_parameters=ROPES[kind])
    made = TransformersEngine(Recipe(engine="transformers", model="m", path=str(folder)), Arm.NATIVE, SUITE)
    made.load()
    return made


def score(engine: TransformersEngine, canary: Canary) -> str:
    rendered = engine.render(canary, None)
    key = TraceKey(canary=canary.id, probe=Probe.SCORE)
    return engine.score(key, canary, rendered, [5, 6, 7]).head.sha256


def test_the_longest_prompt_is_forgotten_before_the_next(tmp_path: Path) -> None:
    made = engine(tmp_path, "dynamic")
    first = score(made, MIDDLE)
    score(made, LONG)
    assert score(made, MIDDLE) == first
    key = TraceKey(canary="middle", probe=Probe.DECODE)
    decodes = []
    for canary in (MIDDLE, LONG, MIDDLE):
        decodes.append(made.decode(replace(key, canary=canary.id), canary, made.render(canary, None)).head.sha256)
    assert decodes[0] == decodes[2]


def test_without_it_the_library_would_remember(tmp_path: Path) -> None:
    """The trap is real in this transformers; where a later one mends it, this test says that the reset may go."""
    made = engine(tmp_path, "dynamic")
    first = score(made, MIDDLE)
    assert made._bench is not None
    made._bench = replace(made._bench, remembered=Remembered(()))
    score(made, LONG)
    assert score(made, MIDDLE) != first


def test_a_model_of_fixed_frequencies_remembers_nothing_that_moves(tmp_path: Path) -> None:
    made = engine(tmp_path, "default")
    assert made._loaded is not None
    kept = Remembered.of(made._loaded.model).kept
    before = [value.clone() if isinstance(value, torch.Tensor) else value for _, _, value in kept]
    score(made, LONG)
    after = [value for _, _, value in Remembered.of(made._loaded.model).kept]
    for old, new in zip(before, after, strict=True):
        assert torch.equal(old, new) if isinstance(old, torch.Tensor) else old == new
