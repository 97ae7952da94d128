"""What the model's file says about generation, sorted by effect, and what is in force instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driftpin.environment.fact import Fact
from driftpin.settings.recipe import Sampling
from runner.sampling.effect import KEPT, Effect
from runner.sampling.installed import known_names
from runner.sampling.table import SETTINGS


@dataclass(frozen=True, kw_only=True)
class SamplingReport:
    """Settings by name; `in_force` and the `file_` parts hold only values that are not neutral."""

    mode: Sampling
    in_force: Mapping[str, Any]  # settings that act on this target's calls
    asked: Mapping[str, Any]  # by name in the recipe
    file_acts: Mapping[str, Any]  # what the file would have applied to a greedy call, refused settings included
    file_inert: Mapping[str, Any]  # in the file, without effect under greedy
    file_overridden: Mapping[str, Any]  # in the file, but decided by driftpin: length, cache, outputs
    file_unclassified: Mapping[str, Any]  # in the file, unknown to the table or to this transformers: not known to act
    end_ids: tuple[int, ...]  # an output ends with any of these; empty where the file names none

    def facts(self) -> dict[str, Fact]:
        """As environment facts under `sampling.`, values in their JSON form with floats as strings."""
        parts = {"in_force": self.in_force, "asked": self.asked, "file": self.file_acts, "inert": self.file_inert}
        parts |= {"overridden": self.file_overridden, "unclassified": self.file_unclassified}
        named = {
            f"sampling.{part}.{name}": plain(value) for part, values in parts.items() for name, value in values.items()
        }
        return {"sampling.mode": self.mode.value, "sampling.end_ids": list(self.end_ids)} | named


def values_of(generation_config: Any) -> dict[str, Any]:
    """All values of a generation configuration that are set, custom entries included."""
    values: dict[str, Any] = generation_config.to_dict()
    return {name: value for name, value in values.items() if value is not None}


def would_have_applied(generation_config: Any) -> dict[str, Any]:
    """Names and values that act under greedy decoding, or would make it something else (`do_sample`, beams, ...)."""
    return _with_effect(values_of(generation_config), Effect.ACTS, Effect.REFUSED)


def sort_file(generation_config: Any) -> dict[str, dict[str, Any]]:
    """The `file_` parts of a report by field name."""
    values, known = values_of(generation_config), known_names()
    return {
        "file_acts": _with_effect(values, Effect.ACTS, Effect.REFUSED),
        "file_inert": _with_effect(values, Effect.INERT),
        "file_overridden": _with_effect(values, Effect.OURS),
        "file_unclassified": {name: value for name, value in values.items() if name not in SETTINGS.keys() & known},
    }


def _with_effect(values: Mapping[str, Any], *effects: Effect) -> dict[str, Any]:
    known = known_names()
    return {name: value for name, value in values.items() if name in known and _counts(name, value, effects)}


def _counts(name: str, value: Any, effects: tuple[Effect, ...]) -> bool:
    setting = SETTINGS.get(name)
    if setting is None or setting.effect not in effects or setting.neutral is KEPT:
        return False
    return not setting.is_neutral(value)


def plain(value: Any) -> Any:
    """A setting's value as a fact: JSON with floats as their shortest text and tuples in keys written out."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(part) for part in value]
    return plain(value.to_dict()) if hasattr(value, "to_dict") else str(value)
