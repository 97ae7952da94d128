"""What was asked of the framework and what it then said is in force. Knows no flag by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from driftpin.environment.fact import Fact, Unknown

Read = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Applied:
    """Settings by name: JSON values asked for, and as read back afterwards (`Unknown` where reading failed).

    `in_force` also holds settings that nobody asked to change. `differences` gives, for each name whose read-back is
    not what was asked, the reason in words.
    """

    asked: Mapping[str, Any]
    in_force: Mapping[str, Fact]
    differences: Mapping[str, str]

    @classmethod
    def compared(cls, asked: Mapping[str, Any], in_force: Mapping[str, Fact], reasons: Mapping[str, str]) -> Applied:
        """Find the differences; `reasons` holds what failed while setting, by name."""
        names = [name for name, value in asked.items() if in_force.get(name, ABSENT) != value]
        found = {name: _reason(name, asked[name], in_force.get(name, ABSENT), reasons) for name in names}
        return cls(asked=dict(asked), in_force=dict(in_force), differences=found)

    def to_json(self) -> dict[str, Any]:
        """As stored in an environment's context."""
        shown = {n: f.to_json() if isinstance(f, Unknown) else {"value": f} for n, f in self.in_force.items()}
        return {"asked": dict(self.asked), "in_force": shown, "differences": dict(self.differences)}


ABSENT = Unknown("this version of the library has no such setting")


def read_back(readers: Mapping[str, Read]) -> dict[str, Fact]:
    """Call every reader; one that raises gives `Unknown` with the reason.

    Warnings are not passed on: some torch versions warn whoever reads a switch that has a younger sister.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: _read(reader) for name, reader in readers.items()}


def _read(reader: Read) -> Fact:
    try:
        return reader()
    except AttributeError:
        return ABSENT
    except (RuntimeError, AssertionError, ValueError, TypeError) as error:  # what torch's flag getters raise
        return Unknown(f"reading it raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def _reason(name: str, asked: Any, in_force: Fact, reasons: Mapping[str, str]) -> str:
    if name in reasons:
        return reasons[name]
    if isinstance(in_force, Unknown):
        return f"asked for {asked!r}; what is in force is unknown: {in_force.reason}"
    return f"asked for {asked!r}, but {in_force!r} is in force"
