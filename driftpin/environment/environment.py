"""The environment of a replay: what may change the numbers, in three hashed sections, and unhashed context.

Knows nothing of how facts are captured; see `runner.capture` for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from driftpin.canonical import digest_of
from driftpin.environment.fact import Fact, Unknown, fact_from_json, fact_to_json


class Section(StrEnum):
    """The hashed parts of an environment, most telling first."""

    MODEL = "model"  # weights, tokenizer, template, generation configuration
    STACK = "stack"  # libraries, device class, modes, variables
    BEHAVIOUR = "behaviour"  # what the microprobes computed


class Equality(StrEnum):
    """Whether two sections agree."""

    SAME = "same"  # every fact known on both sides and equal
    DIFFERENT = "different"  # at least one known fact differs
    UNDETERMINED = "undetermined"  # nothing known differs, but something is unknown


Facts = Mapping[str, Fact]


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Facts by dotted name, such as `library.torch` or `weights.model.safetensors`, in each section."""

    model: Facts
    stack: Facts
    behaviour: Facts
    context: Facts = field(default_factory=dict)

    def section(self, section: Section) -> Facts:
        """The facts of one hashed section."""
        facts: Facts = getattr(self, section.value)
        return facts

    def digest(self, section: Section) -> str:
        """sha256 over the section's facts, unknowns included by name only, so that their wording cannot matter."""
        facts = self.section(section)
        known = {name: fact for name, fact in facts.items() if not isinstance(fact, Unknown)}
        return digest_of({"known": known, "unknown": sorted(set(facts) - set(known))})

    @property
    def digests(self) -> dict[str, str]:
        """The three digests by section name."""
        return {section.value: self.digest(section) for section in Section}

    def unknowns(self, section: Section) -> dict[str, str]:
        """Reasons of the section's unknown facts by name."""
        return {n: f.reason for n, f in self.section(section).items() if isinstance(f, Unknown)}

    def hashed_to_json(self) -> dict[str, Any]:
        """The three hashed sections, as stored by content (context is kept apart)."""
        return {s.value: {n: fact_to_json(f) for n, f in self.section(s).items()} for s in Section}

    def context_to_json(self) -> dict[str, Any]:
        """The unhashed context."""
        return {name: fact_to_json(fact) for name, fact in self.context.items()}

    @classmethod
    def from_json(cls, hashed: Mapping[str, Any], context: Mapping[str, Any]) -> Environment:
        """The inverse of `hashed_to_json` and `context_to_json`."""
        parts = {s.value: {n: fact_from_json(v) for n, v in hashed[s.value].items()} for s in Section}
        return cls(**parts, context={n: fact_from_json(v) for n, v in context.items()})


def equality(a: Facts, b: Facts) -> Equality:
    """Compare two sections: a missing name is a difference, an unknown value is neither equal nor different."""
    if set(a) != set(b):
        return Equality.DIFFERENT
    unknown = False
    for name in a:
        if isinstance(a[name], Unknown) or isinstance(b[name], Unknown):
            unknown = True
        elif a[name] != b[name]:
            return Equality.DIFFERENT
    return Equality.UNDETERMINED if unknown else Equality.SAME
