"""The canaries of the pairs' tests, and engines that run them in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.probe import Arm, Probe, Shape, TraceKey
from driftpin.trace.traceset import Trace
from runner.engines.transformers import TransformersEngine

SHORT = Canary(id="short", prompt="2 + 2 =", settings=CanarySettings(max_new_tokens=6))
CHAT = Canary(
    id="chat", messages=(Message(role="user", content="héllo 🙂"),), settings=CanarySettings(max_new_tokens=24)
)
LONG = Canary(id="long", prompt="tell me " * 20, settings=CanarySettings(max_new_tokens=40))
SUITE = Suite(name="pairs", canaries=(SHORT, CHAT, LONG))


def recipe(folder: Path, **changes: Any) -> Recipe:
    """A tiny model in bfloat16 on one thread."""
    return replace(
        Recipe(engine="transformers", model="tiny", path=str(folder), dtype="bfloat16", threads=1), **changes
    )


def engine(folder: Path, arm: Arm = Arm.NATIVE, **changes: Any) -> TransformersEngine:
    """An engine with its model loaded."""
    made = TransformersEngine(recipe(folder, **changes), arm, SUITE)
    made.load()
    return made


def decode(made: TransformersEngine, canary: Canary, shape: Shape = Shape.ALONE) -> Trace:
    """The canary's greedy generation."""
    key = TraceKey(canary=canary.id, probe=Probe.DECODE, shape=shape)
    return made.decode(key, canary, made.render(canary, None))


def score(made: TransformersEngine, canary: Canary, ids: list[int], shape: Shape = Shape.ALONE) -> Trace:
    """The canary's score on these tokens."""
    key = TraceKey(canary=canary.id, probe=Probe.SCORE, shape=shape)
    return made.score(key, canary, made.render(canary, None), ids)
