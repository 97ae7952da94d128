"""Scores that are measured all at once, the first time one of them is asked for, and handed out one by one.

Knows requests and outcomes; nothing of models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driftpin.trace.probe import TraceKey
from runner.engines.bench import Run
from runner.engines.protocol import ScoreRequest

Outcome = Run | Exception


class Foreseen:
    """What will be asked for, and what has been measured and not yet been handed out."""

    def __init__(self, measure: Callable[[Sequence[ScoreRequest]], Sequence[Outcome]]) -> None:
        self._measure = measure
        self._wanted: dict[TraceKey, ScoreRequest] = {}
        self._done: dict[TraceKey, tuple[ScoreRequest, Outcome]] = {}

    def foresee(self, requests: Sequence[ScoreRequest]) -> None:
        """These will be asked for."""
        self._wanted |= {request.key: request for request in requests}

    def take(self, request: ScoreRequest) -> Run:
        """The outcome, measured together with everything foreseen; its error is raised."""
        known = self._done.pop(request.key, None)
        if known is None or known[0] != request:
            self._measure_all(request)
            known = self._done.pop(request.key)
        outcome = known[1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def clear(self) -> None:
        """Let go of everything."""
        self._wanted.clear()
        self._done.clear()

    def _measure_all(self, request: ScoreRequest) -> None:
        wanted = list((self._wanted | {request.key: request}).values())
        self._wanted.clear()  # whatever happens: measuring again would load everything again
        try:
            outcomes = self._measure(wanted)
        except Exception as error:  # noqa: BLE001 - what failed for all is the outcome of each, raised by `take`
            outcomes = [error] * len(wanted)
        self._done |= {one.key: (one, outcome) for one, outcome in zip(wanted, outcomes, strict=True)}
