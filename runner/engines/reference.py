"""The reference arm's terms: in which way a model runs in float32, and what it refuses. Pure; knows no model, no torch.

Whole where four bytes per parameter fit in four fifths of the memory, else block by block: each block's weights are
loaded once, all scores go through it, and it is let go again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from driftpin.environment.fact import Fact
from driftpin.environment.reference import AS_STORED, WAY, WEIGHTS
from driftpin.errors import CannotMeasureError, ConfigError
from driftpin.settings.recipe import Recipe

OPTION = "reference"
SHARE = 0.8  # of the memory that a whole model may take
BYTES = 4  # of a float32 parameter


class Way(StrEnum):
    """How the reference arm runs a model."""

    WHOLE = "whole"  # all of it on the device at once
    BLOCK_BY_BLOCK = "block_by_block"  # one block on the device at a time


@dataclass(frozen=True, kw_only=True)
class Room:
    """The memory that a reference may use."""

    size: int  # bytes
    of: str  # what was measured, in words


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The way that runs, with its reason."""

    way: Way
    asked: bool  # by the recipe
    needed: int  # bytes of the whole model's parameters in float32
    room: Room
    weights: str = AS_STORED  # whose values these are

    def facts(self) -> dict[str, Fact]:
        """For the unhashed context; free memory changes with every replay, so it is a fact of now."""
        return {
            WAY: self.way.value,
            WEIGHTS: self.weights,
            "reference.asked": self.asked,
            "reference.parameter_bytes": self.needed,
            "now.reference.memory_bytes": self.room.size,
            "reference.memory_of": self.room.of,
        }


def asked_way(recipe: Recipe) -> Way | None:
    """What the recipe's `options.reference` asks for; `ConfigError` for a word that is no way."""
    word = recipe.options.get(OPTION)
    if word is None:
        return None
    if word not in tuple(Way):
        ways = " or ".join(f'"{way.value}"' for way in Way)
        raise ConfigError(
            f"options.{OPTION} is {word!r}, which is no way to run.", remedy=f"Use {ways}, or leave it out."
        )
    return Way(word)


def choose(asked: Way | None, parameters: int, room: Room, weights: str = AS_STORED) -> Choice:
    """The asked way, else the one that the room allows for that many parameters.

    `CannotMeasureError` for quantised weights block by block: they are de-quantised by loading all of them.
    """
    needed = BYTES * parameters
    fitting = Way.WHOLE if needed <= SHARE * room.size else Way.BLOCK_BY_BLOCK
    if weights != AS_STORED and (asked or fitting) is Way.BLOCK_BY_BLOCK:
        raise _only_whole(needed, room)
    return Choice(way=asked or fitting, asked=asked is not None, needed=needed, room=room, weights=weights)


def _only_whole(needed: int, room: Room) -> CannotMeasureError:
    return CannotMeasureError(
        f"Quantised weights are de-quantised all at once, which needs {needed / 2**30:.1f} GiB of float32, "
        f"and {SHARE:.0%} of {room.size / 2**30:.1f} GiB ({room.of}) may be used.",
        remedy='Use a device with more memory, or say options = { reference = "whole" }.',
    )


def no_decode() -> CannotMeasureError:
    """The refusal of a decode in the reference arm."""
    return CannotMeasureError(
        "The reference arm scores given tokens; it does not decode.", remedy="Ask it for `score`."
    )
