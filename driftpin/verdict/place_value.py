"""A place as a value: where a difference enters, or why that cannot be said. Knows no traces."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class How(StrEnum):
    """What a place was read off."""

    BITS = "bits"  # the first output digest that differs while its inputs agree
    DEVIATION = "deviation"  # the block at which hidden states leave their rounding yardstick
    ROUTER = "router"  # the expert choice that differs although what enters its block agrees
    CHOICE = "choice"  # the logits agree and another token was chosen from them


ROUTER = "router"  # the label of a divergence before which experts were chosen otherwise


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a difference enters, or why that cannot be said."""

    found: bool
    sentence: str
    block: str | None = None
    index: int | None = None  # from 0
    blocks: int | None = None
    canary: str | None = None
    position: int | None = None  # sequence index
    agreeing: int = 0  # executions that point to this block
    asked: int = 0  # executions that could point to one
    arm: str | None = None  # "native" or "reference"
    how: How | None = None
    label: str | None = None  # "router" where experts were chosen otherwise first


def nowhere(sentence: str) -> Place:
    """No place, and why."""
    return Place(found=False, sentence=sentence)


def not_localisable(reason: str) -> Place:
    """No place for a reason that lies in the recording, not in the numbers."""
    return nowhere(f"not localisable: {reason}")
