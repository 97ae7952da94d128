"""Engines by name. The transformers engine is imported only when it is asked for, so the fake one needs no torch."""

from __future__ import annotations

from driftpin.errors import ConfigError
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Suite
from driftpin.trace.probe import Arm
from runner.engines.protocol import Engine
from runner.engines.reference import OPTION, asked_way

OPTIONS = {"transformers": (OPTION,), "fake": (OPTION, "faults")}  # of a recipe, by engine


def build(recipe: Recipe, arm: Arm, suite: Suite) -> Engine:
    """The engine that a recipe names, not loaded yet; `ConfigError` for an unknown name or option."""
    if recipe.engine not in OPTIONS:
        raise ConfigError(f"There is no engine {recipe.engine!r}.", remedy=f"Use one of: {', '.join(OPTIONS)}.")
    _check_options(recipe)
    if recipe.engine == "fake":
        from runner.engines.fake import FakeEngine  # noqa: PLC0415 - one engine must not load the other

        return FakeEngine(recipe, arm, suite)
    from runner.engines.transformers import TransformersEngine  # noqa: PLC0415 - torch is heavy

    return TransformersEngine(recipe, arm, suite)


def _check_options(recipe: Recipe) -> None:
    known = OPTIONS[recipe.engine]
    if unknown := sorted(set(recipe.options) - set(known)):
        raise ConfigError(
            f"The {recipe.engine} engine has no option {', '.join(unknown)}.", remedy=f"Known: {', '.join(known)}."
        )
    asked_way(recipe)
