"""What a check of a suite found, with what to do about it. A value; knows no model and no check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How much a finding asks for."""

    WARNING = "warning"  # the suite should be changed, or its author should know why not
    NOTE = "note"  # worth knowing; most suites have some


class FindingKind(StrEnum):
    """What was found; a stable word for programs."""

    GAP = "gap"  # something that usually breaks is in no prompt
    SLOW = "slow"  # a replay or a check would take long
    TWIN = "twin"  # two canaries ask the same
    UNCHECKED = "unchecked"  # canaries without a check
    LENGTH_NOT_CROSSED = "length_not_crossed"  # every canary lies on one side of a length that matters to the model
    TOO_LONG = "too_long"  # a canary goes beyond the positions that the model has
    CACHE_EDGE = "cache_edge"  # a longer canary would change the static cache of all others
    ORDER_DEPENDENT = "order_dependent"  # a canary's bits depend on what ran before it
    UNREPEATABLE = "unrepeatable"  # a canary's bits differ between two processes that did the same
    TWO_PATHS = "two_paths"  # decode and score of the same tokens are further apart than rounding
    TIE = "tie"  # the top two logits are equal somewhere: whatever breaks the tie decides the text
    FLIPS = "flips"  # rounding alone, or scoring instead of generating, changed the top token somewhere
    NEAR = "near"  # a margin is below what rounding may move: quiet here, perhaps not on the next kernel
    FAR = "far"  # no margin is near what rounding moves: only numbers will show a small change
    CHECK_FAILS = "check_fails"  # a check does not hold for this model even now
    ILL = "ill"  # a trace that is wrong by itself
    UNMEASURED = "unmeasured"  # a canary that the model could not run


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence of what was found and one of what to do; `canaries` are the ones meant, empty for the suite."""

    kind: FindingKind
    level: Level
    sentence: str
    remedy: str
    canaries: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `driftpin suite check --format json` shows it."""
        return {
            "kind": self.kind.value,
            "level": self.level.value,
            "canaries": list(self.canaries),
            "sentence": self.sentence,
            "remedy": self.remedy,
        }
