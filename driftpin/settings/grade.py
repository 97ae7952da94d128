"""What a target's repeats repeat: it sets the rule by which its replays are judged."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Grade(StrEnum):
    """From strict to lax; below `bitwise`, k of n repeats must show a finding before it counts."""

    BITWISE = "bitwise"  # every bit: one execution is enough
    TOKENS = "tokens"  # every token, while the numbers move a little
    UNSTABLE = "unstable"  # not even the tokens


def grade_of(operations: Mapping[str, Any]) -> Grade:
    """The grade that a target's operations state; bitwise where they say nothing."""
    return Grade(operations.get("grade", Grade.BITWISE))
