"""One fact about an environment: a JSON value, or unknown with a reason. Knows nothing of how facts are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unknown:
    """A fact that could not be read. It equals nothing and differs from nothing, whatever its reason says."""

    reason: str

    def to_json(self) -> dict[str, str]:
        """The tagged form in JSON."""
        return {"unknown": self.reason}


Fact = Any  # a JSON value (str, int, bool, None, list, dict of them; floats as strings), or Unknown


def fact_to_json(fact: Fact) -> Any:
    """A fact as JSON; a known value is wrapped so that no value can look like an unknown."""
    return fact.to_json() if isinstance(fact, Unknown) else {"value": fact}


def fact_from_json(value: Any) -> Fact:
    """The inverse of `fact_to_json`."""
    return Unknown(value["unknown"]) if "unknown" in value else value["value"]
