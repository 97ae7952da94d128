"""A vocabulary masked with minus infinity is a habit of some models, not a fault; NaN and plus infinity are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.head import Head
from driftpin.trace.health import Ill, ills
from driftpin.trace.probe import Arm, Probe, TraceKey
from runner.engines.fake import FakeEngine
from runner.recording.rows import head_arrays


@pytest.fixture
def head() -> Head:
    canary = Canary(id="a", prompt="Once upon a time", settings=CanarySettings(max_new_tokens=6))
    engine = FakeEngine(Recipe(engine="fake", model="f"), Arm.NATIVE, Suite(name="s", canaries=(canary,)))
    engine.load()
    return engine.decode(TraceKey(canary="a", probe=Probe.DECODE), canary, engine.render(canary, None)).head


def with_logit(head: Head, value: float) -> Head:
    logits = np.zeros((len(head.output_ids), head.vocab), dtype=np.float32)
    logits[:, 7] = value
    return replace(head, **head_arrays(logits, head.output_ids))


def test_minus_infinity_is_a_mask(head: Head) -> None:
    masked = with_logit(head, -np.inf)
    assert masked.nonfinite.tolist() == [1] * len(head.output_ids)
    assert Ill.NONFINITE not in ills(masked, None)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_plus_infinity_are_ills(head: Head, value: float) -> None:
    assert Ill.NONFINITE in ills(with_logit(head, value), None)
