"""Sides of a comparison straight from an engine, without a store, for tests of localisation to hold together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from driftpin.comparison.compare import compare
from driftpin.comparison.facts import Comparison
from driftpin.comparison.side import Side
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.probe import Arm, Probe, Shape, TraceKey
from driftpin.trace.traceset import Trace, TraceSet
from driftpin.verdict.floors import Floors, Perturbed, floors_of

SEEDS = 4


def suite_of(*prompts: str, tokens: int = 12) -> Suite:
    """One chat canary per prompt, numbered."""
    settings = CanarySettings(max_new_tokens=tokens)
    canaries = [
        Canary(id=f"c{n}", messages=(Message(role="user", content=text),), settings=settings)
        for n, text in enumerate(prompts)
    ]
    return Suite(name="placing", canaries=tuple(canaries))


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """One run of a suite: its side, and what it emitted."""

    side: Side
    traces: dict[TraceKey, Trace]

    def tokens(self, canary: str) -> list[int]:
        found = self.traces.get(TraceKey(canary=canary, probe=Probe.DECODE))
        return (found or self.traces[TraceKey(canary=canary, probe=Probe.SCORE)]).head.output_ids.tolist()

    def floors(self) -> Floors:
        """The yardstick of its own perturbed scores."""
        pairs = []
        for key, trace in self.traces.items():
            if key.shape is Shape.PERTURBED:
                plain = self.traces[replace(key, shape=Shape.ALONE, repeat=0)]
                pairs.append(
                    Perturbed(
                        canary=key.canary,
                        head=plain.head,
                        other=trace.head,
                        layers=plain.layers,
                        other_layers=trace.layers,
                    )
                )
        found = floors_of(pairs, SEEDS)
        assert found is not None
        return found


def run(
    folder: Path,
    suite: Suite,
    *,
    arm: Arm = Arm.NATIVE,
    on: Made | None = None,
    seeds: int = 0,
    touch: Any = None,
    **recipe: Any,
) -> Made:
    """Decode (native arm only) and score on the tokens of `on`, or on its own; `touch` edits the loaded model."""
    from runner.engines.transformers import TransformersEngine

    settings = {"dtype": "bfloat16", "threads": 1, **recipe}
    engine = TransformersEngine(Recipe(engine="transformers", model="m", path=str(folder), **settings), arm, suite)
    engine.load()
    if touch is not None:
        touch(engine._loaded.model)  # type: ignore[union-attr]
    traces: dict[TraceKey, Trace] = {}
    rendered = {canary.id: engine.render(canary, None) for canary in suite.canaries}
    if arm is Arm.NATIVE:
        for canary in suite.canaries:
            key = TraceKey(canary=canary.id, probe=Probe.DECODE)
            traces[key] = engine.decode(key, canary, rendered[canary.id])
    own = Made(side=Side(suite=suite, traces=TraceSet(entries=())), traces=traces)
    for canary in suite.canaries:
        given = (on or own).tokens(canary.id)
        keys = [TraceKey(canary=canary.id, probe=Probe.SCORE)]
        keys += [replace(keys[0], shape=Shape.PERTURBED, repeat=seed) for seed in range(seeds)]
        for key in keys:
            traces[key] = engine.score(key, canary, rendered[canary.id], given)
    engine.close()
    return Made(side=_side(suite, traces), traces=traces)


def compared(old: Made, new: Made) -> Comparison:
    """The two sides."""
    return compare(old.side, new.side)


def _side(suite: Suite, traces: dict[TraceKey, Trace]) -> Side:
    entries = {key: trace.entry() for key, trace in traces.items()}
    return Side(
        suite=suite,
        traces=TraceSet.of(entries.values()),
        heads={entries[key].head or "": trace.head for key, trace in traces.items()},
        layers={entries[key].layers or "": trace.layers for key, trace in traces.items() if trace.layers},
        texts={entries[key].text or "": trace.text for key, trace in traces.items()},
    )
