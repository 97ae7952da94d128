"""One planted change: how it is made, and what the verdict ought to say. Values only; plants nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from driftpin.verdict.kind import VerdictKind

ROUNDING, NATIVE_PATH, MODEL = "rounding", "native_path_defect", "model_or_input_change"  # words of a diagnosis
UNSAID = "unsaid"  # no word, with the reason
HEAD = "head"  # as an expected place: behind the last block

VARIABLE = "DRIFTPIN_PLANTED"  # tells a worker which patch of `in_process` to make

ALONE, EAGER = "alone", "eager"  # beside which benign change of the stack a change is planted


class Kind(StrEnum):
    """Whether anybody should be told."""

    BENIGN = "benign"  # the same model, computed by other means
    FAULT = "fault"  # the answer to another question, or of another model
    REFUSED = "refused"  # cannot run here, which must be said and is no drift


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the verdict may be; the block is a module path, None where the change has no one place."""

    verdicts: frozenset[VerdictKind]
    classes: frozenset[str]
    block: str | None = None
    always: bool = False  # no size excuses a miss: the change does not act through numbers


@dataclass(frozen=True, kw_only=True)
class Change:
    """One row's change. What is planted in a folder, in the recipe, in variables or in the process, adds up."""

    id: str
    what: str  # for the table
    kind: Kind
    expected: Expected
    recipe: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    plant: str | None = None  # a change of `runner.planting`
    options: Mapping[str, Any] = field(default_factory=dict)
    patch: str | None = None  # a patch of `in_process`, native arm only
    beside: str = ALONE

    @property
    def attends(self) -> bool:
        """It is about attention itself or about nothing at all: on eager it would be another row's double."""
        quiet = not (self.recipe or self.variables or self.plant or self.patch)
        return quiet or not {"attention", "sdpa"}.isdisjoint(self.recipe)

    def on_eager(self) -> Change:
        """The same on top of eager attention, a benign change of the stack."""
        return replace(self, recipe={**self.recipe, "attention": "eager"}, beside=EAGER)
