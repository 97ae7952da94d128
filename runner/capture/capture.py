"""Puts the facts of a loaded model together into one environment. Knows which fact belongs to which section."""

from __future__ import annotations

from functools import partial
from typing import Any

from driftpin.environment.environment import Environment, Section
from driftpin.environment.fact import Fact, Unknown
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm, Probe
from runner.capture.context import context_facts
from runner.capture.device import device_context, device_facts
from runner.capture.flags import execution_facts, flag_facts
from runner.capture.image import image_facts
from runner.capture.isa import isa_facts
from runner.capture.libraries import library_facts
from runner.capture.microprobes import MicroprobeShapes, behaviour_facts
from runner.capture.objects import object_facts
from runner.capture.parameters import computed_facts, parameter_facts
from runner.capture.tokenizer import tokenizer_class, tokenizer_facts
from runner.capture.variables import variable_facts
from runner.capture.weights import configuration_facts, weight_facts
from runner.determinism import Applied, attention_context
from runner.loading import Loaded, device_of
from runner.sampling import SamplingReport

ACTING = ("sampling.mode", "sampling.end_ids", "sampling.in_force.", "sampling.asked.", "sampling.file.")


def capture_environment(
    loaded: Loaded,
    recipe: Recipe,
    arm: Arm,
    applied: Applied | None = None,
    sampling: SamplingReport | None = None,
    *,
    verify_weights: bool = False,
    shapes: MicroprobeShapes | None = None,
) -> Environment:
    """Facts as they are now; one that cannot be read is unknown, never an exception.

    `verify_weights` reads weight files in full. `shapes` are the microprobes', by default the model's own with a
    prompt of 64 and a batch of 4.
    """
    device = device_of(recipe)
    reported = {} if sampling is None else sampling.facts()
    acting = {name: fact for name, fact in reported.items() if name.startswith(ACTING)}
    environment = Environment(
        model=_model(loaded, recipe, verify=verify_weights) | acting,
        stack=_stack(loaded, recipe, arm, cpu=device.type == "cpu") | device_facts(device),
        behaviour=_behaviour(loaded, recipe, arm, shapes),
    )
    inert = {name: fact for name, fact in reported.items() if name not in acting}
    context = context_facts(loaded, applied) | device_context(device) | inert | _reasons(environment)
    return Environment(
        model=environment.model, stack=environment.stack, behaviour=environment.behaviour, context=context
    )


def _model(loaded: Loaded, recipe: Recipe, *, verify: bool) -> dict[str, Fact]:
    return {
        **weight_facts(loaded.files, verify=verify),
        **configuration_facts(loaded.path, code=recipe.trust_remote_code),
        **parameter_facts(loaded.model),
        **tokenizer_facts(loaded.tokenizer),
        "keys.missing": list(loaded.missing_keys),
        "keys.unexpected": list(loaded.unexpected_keys),
    }


def _stack(loaded: Loaded, recipe: Recipe, arm: Arm, *, cpu: bool) -> dict[str, Fact]:
    return {
        "dtype": str(loaded.dtype).removeprefix("torch."),
        **execution_facts(loaded.model.config, recipe, arm),
        **computed_facts(loaded.model),
        **tokenizer_class(loaded.tokenizer),
        **flag_facts(cpu=cpu),
        **(isa_facts() if cpu else {}),
        **library_facts(),
        **object_facts(),
        **variable_facts(),
        **image_facts(),
    }


def _behaviour(loaded: Loaded, recipe: Recipe, arm: Arm, shapes: MicroprobeShapes | None) -> dict[str, Fact]:
    try:
        own = shapes or MicroprobeShapes.of(loaded.model.config)
    except AttributeError as error:
        return {"microprobes": Unknown(f"the model's configuration does not tell its widths: {error}")}
    pinned: Any = partial(attention_context, recipe, arm, Probe.DECODE)
    return behaviour_facts(own, loaded.dtype, device_of(recipe), pinned)


def _reasons(environment: Environment) -> dict[str, Fact]:
    """Why facts are unknown, by section and name."""
    named = ((section, name, reason) for section in Section for name, reason in environment.unknowns(section).items())
    return {f"unknown.{section.value}.{name}": reason for section, name, reason in named}
