"""What an engine is to the worker. Engines know models and token ids; they know no store and no baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from driftpin.environment.environment import Environment
from driftpin.suite.canary import Canary
from driftpin.trace.probe import TraceKey
from driftpin.trace.traceset import Trace


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A canary's prompt as the model gets it; `text` is None where no template or tokenizer was involved."""

    text: str | None
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """One score that will be asked for: the arguments of `Engine.score`."""

    key: TraceKey
    canary: Canary
    rendered: Rendered
    output_ids: tuple[int, ...]


Told = Callable[[int, int], None]  # pieces of the model that are through, and how many there are


def untold(done: int, of: int) -> None:
    """Nobody wants to know."""


class Engine(Protocol):
    """One loaded model in one process, in one arm. Methods are called in the order in which they stand here.

    The reference arm scores and does not decode: `CannotMeasureError`.
    """

    def load(self) -> None:
        """Make the process deterministic and load the model; `ModelError` or `CannotMeasureError` with the remedy."""

    def environment(self, *, verify_weights: bool = False) -> Environment:
        """Facts as they are now, after loading; with `verify_weights` weight files are read in full, not by cache."""

    def render(self, canary: Canary, clock: str | None) -> Rendered:
        """Template, then tokenise without special tokens; `SuiteError` for a canary that needs a clock and has none."""

    def warm_up(self) -> None:
        """The declared warm-up: one fixed short decode and score whose results are thrown away."""

    def observer_check(self, canary: Canary, rendered: Rendered) -> str | None:
        """None when logits are bit-equal with recording on and off, else what differed."""

    def decode(self, key: TraceKey, canary: Canary, rendered: Rendered) -> Trace:
        """Greedy generation in the declared shape, through the model's ordinary `generate`."""

    def foresee(self, requests: Sequence[ScoreRequest], told: Told = untold) -> None:
        """Every score that will be asked for, in that order; most engines need not know it.

        One that loads its model piece by piece does so once for all of them, within the first `score`, and says how
        far it is. It measures nothing yet: what goes wrong is told by `score`.
        """

    def score(self, key: TraceKey, canary: Canary, rendered: Rendered, output_ids: Sequence[int]) -> Trace:
        """One teacher-forced prefill over prompt and given outputs."""

    def close(self) -> None:
        """Let go of the model."""
