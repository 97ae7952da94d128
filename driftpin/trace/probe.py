"""How a trace came about: probe, arm, batch shape, stop reason. Plain words with their meaning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Probe(StrEnum):
    """How a canary is executed."""

    DECODE = "decode"  # greedy generation
    SCORE = "score"  # teacher-forced on given tokens, one prefill


class Arm(StrEnum):
    """The precision that a replay runs in."""

    NATIVE = "native"  # the target's own: what users see
    REFERENCE = "reference"  # float32, strict math


class StopReason(StrEnum):
    """Why a decode ended."""

    END = "end"  # an end token was emitted; it is the last output id
    LENGTH = "length"  # the token limit was reached
    FORCED = "forced"  # a score: the tokens were given


class Greedy(IntEnum):
    """What the data say of one position's choice."""

    VIOLATED = 0  # the emitted token is not an arg-max of the processed logits
    PROVEN = 1  # it is (ties allowed)
    FORCED = 2  # a processor or teacher forcing fixed it: exempt


class Shape(StrEnum):
    """The declared batch shape in which a canary ran."""

    ALONE = "alone"  # batch of one, no padding
    FILLED = "filled"  # first row of a fixed filler batch, no padding for it
    PADDED = "padded"  # left-padded beside longer filler rows
    PERTURBED = "perturbed"  # alone, embeddings times (1 + u), |u| <= 1 ulp, u under the repeat's number


DECLARABLE = (Shape.ALONE, Shape.FILLED, Shape.PADDED)  # what a target may ask for; the yardstick adds its own


@dataclass(frozen=True, kw_only=True, order=True)
class TraceKey:
    """Which execution of which canary a trace is; `repeat` counts from 0."""

    canary: str
    probe: Probe
    shape: Shape = Shape.ALONE
    repeat: int = 0

    def __str__(self) -> str:
        return f"{self.canary}/{self.probe.value}/{self.shape.value}/{self.repeat}"
