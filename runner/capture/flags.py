"""Facts about the framework's switches as they are read back now, not as they were asked for. Sets nothing."""

from __future__ import annotations

from typing import Any

from driftpin.environment.fact import Fact, Unknown
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm, Probe
from runner.determinism import flags
from runner.determinism.applied import ABSENT, read_back
from runner.determinism.attention import backend

CPU_ONLY = ("threads", "interop_threads")  # on a GPU they do not touch the model's numbers


def flag_facts(*, cpu: bool) -> dict[str, Fact]:
    """`flag.<name>`; a switch that this torch does not have is no fact, one that cannot be read is unknown."""
    named = flags.mode_flags(warn_only=False) | flags.precision_flags(flags.torch_version())
    values = read_back(flags.recorded() | {name: flag.read for name, flag in named.items()})
    facts: dict[str, Fact] = {}
    for name, value in values.items():
        if value is not ABSENT and (cpu or name not in CPU_ONLY):
            facts[f"flag.{name}"] = value if isinstance(value, Unknown | bool | int | str | None) else str(value)
    return facts


def execution_facts(config: Any, recipe: Recipe, arm: Arm) -> dict[str, Fact]:
    """Attention, experts, cache and compile state, per probe where they may differ."""
    facts: dict[str, Fact] = {
        "attention.implementation": getattr(config, "_attn_implementation", None),
        "experts.implementation": getattr(config, "_experts_implementation", None),
        "cache.class": recipe.cache,
        "compile.state": "eager",
    }
    return facts | {f"attention.{probe.value}": backend(recipe, arm, probe) for probe in Probe}
