"""What follows from a verdict: how loud, and after how many confirmations. Knows the verdicts by name only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How loud a verdict is."""

    PAGE = "page"  # somebody is woken
    TICKET = "ticket"  # somebody looks in working hours
    INFO = "info"  # shown, sent to nobody unless routed
    NONE = "none"  # nothing happens

    @property
    def rank(self) -> int:
        """0 for none up to 3 for page, to find the louder of two."""
        return ("none", "info", "ticket", "page").index(self.value)


# The verdicts in precedence order, and one finding that may be louder than the drift it makes.
VERDICTS = ("incomparable", "invalid", "broken", "unstable", "drift", "incomplete", "numeric", "unblessed", "match")
CHECK_CHANGED = "check_changed"
SUBJECTS = (*VERDICTS, CHECK_CHANGED)

_SAME_STACK = ("page", "page", "page", "ticket", "page", "ticket", "ticket", "info", "none", "page")
_NEW_STACK = ("ticket", "page", "page", "ticket", "ticket", "ticket", "info", "info", "none", "page")
SAME_STACK: Mapping[str, Severity] = {name: Severity(s) for name, s in zip(SUBJECTS, _SAME_STACK, strict=True)}
NEW_STACK: Mapping[str, Severity] = {name: Severity(s) for name, s in zip(SUBJECTS, _NEW_STACK, strict=True)}

DEFAULT_POLICY = "default"
CONFIRMATIONS = 2  # repeats in a fresh process before an incident opens


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Severities by verdict, on the baseline's own stack and on another; defaults are the table of the design."""

    name: str = DEFAULT_POLICY
    confirm: int = CONFIRMATIONS
    same_stack: Mapping[str, Severity] = field(default_factory=lambda: dict(SAME_STACK))
    new_stack: Mapping[str, Severity] = field(default_factory=lambda: dict(NEW_STACK))

    def severity(self, subject: str, *, same_stack: bool) -> Severity:
        """The severity of a verdict's name or of `check_changed`; KeyError for any other word."""
        return (self.same_stack if same_stack else self.new_stack)[subject]

    def to_json(self) -> dict[str, Any]:
        """As stored in a target's operations."""
        stacks = {"same_stack": self.same_stack, "new_stack": self.new_stack}
        tables = {name: {subject: s.value for subject, s in table.items()} for name, table in stacks.items()}
        return {"name": self.name, "confirm": self.confirm, **tables}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Policy:
        """As read from a target's operations."""
        tables = {n: {k: Severity(s) for k, s in value[n].items()} for n in ("same_stack", "new_stack")}
        return cls(name=value["name"], confirm=value["confirm"], **tables)
