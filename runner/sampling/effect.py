"""What a generation setting does to a greedy call. Knows no setting by name; the table is in `table`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Effect(StrEnum):
    """The class of a setting, given that one beam is decoded greedily."""

    ACTS = "acts"  # changes tokens or scores; must be asked for by name
    INERT = "inert"  # has no effect until sampling, beams or an assistant are switched on
    REFUSED = "refused"  # away from its neutral value the call is not greedy, not repeatable or not recordable
    OURS = "ours"  # set by driftpin: length, special tokens, cache, outputs, compilation


KEPT = object()  # the neutral value of a setting that stays as the model's file has it


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One generation setting: its effect, the value at which it does nothing (or which we set), and why."""

    name: str
    effect: Effect
    neutral: Any
    why: str
    also: tuple[
        Any, ...
    ] = ()  # further values that do nothing or that some version has by itself; we do not write them

    def is_neutral(self, value: Any) -> bool:
        """True where `value` does nothing: unset, empty, or the neutral value (library defaults differ by version)."""
        return value is None or value == self.neutral or value in ([], {}, (), *self.also)


def rows(effect: Effect, entries: Mapping[str, tuple[Any, ...]]) -> Iterable[Setting]:
    """Settings of one effect from name -> (neutral value, why, further neutral values ...)."""
    return (
        Setting(name=name, effect=effect, neutral=neutral, why=why, also=tuple(also))
        for name, (neutral, why, *also) in entries.items()
    )
