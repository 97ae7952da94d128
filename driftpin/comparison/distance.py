"""How far two native executions lie from the reference arm's scores of the same tokens. Pure functions of arrays.

The reference knows what float32 and strict arithmetic say of the baseline's tokens. Rounding moves the native arm
about that point without taking it farther away; a defect of the native path takes it farther.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftpin.comparison import tokens
from driftpin.trace.head import Head
from driftpin.trace.probe import TraceKey


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Mean |Δ log-prob| to the reference, in nats, over the positions at which both sides saw the same context."""

    key: TraceKey  # of the candidate's execution
    positions: int
    baseline: float
    candidate: float

    @property
    def ratio(self) -> float:
        """The candidate's distance over the baseline's own; 1 where both are zero."""
        if self.baseline == self.candidate:
            return 1.0
        return self.candidate / self.baseline if self.baseline > 0 else float("inf")


def distance(key: TraceKey, reference: Head, baseline: Head, candidate: Head) -> Distance | None:
    """None where there is no common position, a number is not finite, or the reference scored other tokens."""
    same = np.array_equal(reference.output_ids, baseline.output_ids) and np.array_equal(
        reference.prompt_ids, baseline.prompt_ids
    )
    at = tokens.first_difference(baseline.output_ids, candidate.output_ids)
    shared = len(baseline.output_ids) if at is None else at
    if not same or not shared:
        return None
    truth = reference.logprob[:shared].astype(np.float64)
    old, new = (
        float(np.abs(side.logprob[:shared].astype(np.float64) - truth).mean()) for side in (baseline, candidate)
    )
    if not np.isfinite(old) or not np.isfinite(new):
        return None
    return Distance(key=key, positions=shared, baseline=old, candidate=new)
