"""Puts the recipe's sampling mode in force on a loaded model. After it, `generate` is greedy and nothing is inherited.

The trap (measured in transformers 4.57 and 5.24): whatever a call leaves unset comes from `model.generation_config`,
also when a configuration of one's own is passed. So the model's configuration itself is replaced.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from driftpin.errors import CannotMeasureError, ConfigError
from driftpin.settings.recipe import Recipe, Sampling
from driftpin.suite.canary import CanarySettings
from runner.sampling.asked import checked
from runner.sampling.effect import KEPT, Effect
from runner.sampling.installed import known_names, make
from runner.sampling.report import SamplingReport, sort_file, would_have_applied
from runner.sampling.table import SETTINGS

GREEDY = {"do_sample": False, "num_beams": 1, "num_return_sequences": 1}
REMEDY = 'Set sampling = "clean", or give the neutral value by name in the target\'s generation settings ({example}).'


class Generates(Protocol):
    """A loaded model, as far as sampling is concerned."""

    generation_config: Any


def install(model: Generates, recipe: Recipe) -> SamplingReport:
    """Replace `model.generation_config` by a complete one and report what its file said.

    Raises `ConfigError` for a setting of the recipe that cannot be had, and `CannotMeasureError` when the file, acting
    as shipped, makes the target something other than greedy.
    """
    file = model.generation_config
    asked = checked(recipe.generation, known_names())
    base = _neutral(Effect.ACTS, Effect.INERT, Effect.REFUSED) if recipe.sampling is Sampling.CLEAN else _shipped(file)
    values = base | _kept(file) | asked
    _refuse(values, asked)
    config = _configuration(
        values | _neutral(Effect.OURS) | GREEDY, file if recipe.sampling is not Sampling.CLEAN else None
    )
    model.generation_config = config
    in_force = would_have_applied(config)
    return SamplingReport(
        mode=recipe.sampling, in_force=in_force, asked=asked, end_ids=end_ids(config), **sort_file(file)
    )


def generate_kwargs(model: Generates, recipe: Recipe, settings: CanarySettings) -> dict[str, Any]:
    """Arguments for `model.generate` of one canary, explicit wherever a setting could act; call `install` before.

    The recorder may add inputs, cache and outputs; it must not change these.
    """
    config = model.generation_config
    acting = {name: getattr(config, name, None) for name in _names(Effect.ACTS)}
    asked = checked(recipe.generation, known_names())
    stated = {name: value for name, value in (acting | asked).items() if value is not None}
    return (
        {name: copy.deepcopy(value) for name, value in stated.items()}
        | GREEDY
        | {
            "use_cache": True,
            "max_new_tokens": settings.max_new_tokens,
        }
    )


def end_ids(generation_config: Any) -> tuple[int, ...]:
    """The ids that end an output, in the configuration's order."""
    eos = generation_config.eos_token_id
    if eos is None:
        return ()
    return tuple(int(i) for i in eos) if isinstance(eos, Iterable) else (int(eos),)


def _names(*effects: Effect) -> list[str]:
    known = known_names()
    return [name for name, setting in SETTINGS.items() if setting.effect in effects and name in known]


def _neutral(*effects: Effect) -> dict[str, Any]:
    values = {name: SETTINGS[name].neutral for name in _names(*effects)}
    return {name: value for name, value in values.items() if value is not KEPT}


def _kept(file: Any) -> dict[str, Any]:
    """Special tokens as the file has them; a missing padding id becomes the first end id, as transformers would do."""
    kept = {n: getattr(file, n, None) for n in _names(Effect.OURS) if SETTINGS[n].neutral is KEPT and n.endswith("_id")}
    if kept.get("pad_token_id") is None and end_ids(file):
        kept["pad_token_id"] = end_ids(file)[0]
    return kept


def _shipped(file: Any) -> dict[str, Any]:
    """What acts in the file, over neutral values; settings without effect stay where they are and are left out here."""
    values = _neutral(Effect.ACTS, Effect.REFUSED)
    return values | would_have_applied(file)


def _refuse(values: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setting = SETTINGS[name]
        if setting.effect is Effect.REFUSED and not setting.is_neutral(value) and name not in asked:
            example = f"{name} = {str(setting.neutral).lower()}" if setting.neutral is not None else "not possible here"
            raise CannotMeasureError(
                f"The model's generation_config.json has {name} = {value!r}, which {setting.why}: not a greedy target.",
                remedy=REMEDY.format(example=example),
            )


def _configuration(values: Mapping[str, Any], file: Any | None) -> Any:
    """A configuration with exactly these values; with `file`, its inert and custom entries stay."""
    try:
        config = make(**{n: v for n, v in values.items() if n in _names(Effect.ACTS)})
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"transformers refuses these generation settings: {error}") from error
    if file is not None:
        config = copy.deepcopy(file)
    # setattr and not the constructor: it would warn about settings that have no effect
    for name, value in values.items():
        setattr(config, name, value)
    return config
