"""Checks the settings that a recipe asks for by name. Knows the table and the installed library's names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from driftpin.errors import ConfigError
from runner.sampling.effect import Effect, Setting
from runner.sampling.table import SETTINGS

PLACE = "the target's generation settings"


def checked(generation: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The settings asked for, each valid by itself; raises `ConfigError` for unknown, refused or driftpin's own ones.

    `known` are the names that the installed transformers has.
    """
    for name, value in generation.items():
        setting = SETTINGS.get(name)
        if setting is None:
            raise _unknown(name, known)
        _check(setting, value)
        if name not in known and not setting.is_neutral(value):
            raise ConfigError(f"The installed transformers has no {name}.", remedy=f"Take it out of {PLACE}.")
    return {name: value for name, value in generation.items() if name in known}


def _unknown(name: str, known: frozenset[str]) -> ConfigError:
    close = difflib.get_close_matches(name, sorted(known & set(SETTINGS)), n=3)
    remedy = f"Did you mean {' or '.join(close)}?" if close else "See transformers' GenerationConfig for the names."
    return ConfigError(f"{name!r} in {PLACE} is not a generation setting.", remedy=remedy)


def _check(setting: Setting, value: Any) -> None:
    if setting.effect is Effect.OURS:
        raise ConfigError(f"{setting.name} is set by driftpin: {setting.why}.", remedy=f"Take it out of {PLACE}.")
    if setting.effect is Effect.REFUSED and not setting.is_neutral(value):
        raise ConfigError(
            f"{setting.name} = {value!r} is refused: it {setting.why}.", remedy=f"Take it out of {PLACE}."
        )
    if not _fits(setting.neutral, value):
        wanted = "true or false" if isinstance(setting.neutral, bool) else "a number"
        raise ConfigError(f"{setting.name} in {PLACE} must be {wanted}, not {value!r}.")


def _fits(neutral: Any, value: Any) -> bool:
    if value is None or neutral is None:
        return True
    if isinstance(neutral, bool) or isinstance(value, bool):
        return isinstance(neutral, bool) and isinstance(value, bool)
    return not isinstance(neutral, int | float) or isinstance(value, int | float)
