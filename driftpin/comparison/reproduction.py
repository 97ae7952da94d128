"""Does a score show what a decode of the same canary showed? Pure.

A score is one prefill without a cache, so what only a decode kernel or a damaged cache does is not in it; a place that
was read off such a score would be the place of something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from driftpin.comparison import tokens
from driftpin.comparison.facts import Divergence, TraceComparison
from driftpin.trace.head import Head
from driftpin.trace.probe import Probe, TraceKey

SHARE = 0.5  # of D: a score that moves the pair by this much shows the same


def with_reproduction(
    traces: Iterable[TraceComparison], heads: Mapping[TraceKey, tuple[Head, Head]]
) -> list[TraceComparison]:
    """The same comparisons, each score told whether it reproduces its decode's divergence.

    `heads` are the scores' (baseline, candidate) by key.
    """
    given = list(traces)
    parted = {t.key: t.divergence for t in given if t.key.probe is Probe.DECODE and t.divergence}
    return [_told(trace, parted, heads) for trace in given]


def _told(
    trace: TraceComparison, parted: Mapping[TraceKey, Divergence], heads: Mapping[TraceKey, tuple[Head, Head]]
) -> TraceComparison:
    at = parted.get(replace(trace.key, probe=Probe.DECODE))
    if trace.key.probe is not Probe.SCORE or at is None or trace.key not in heads:
        return trace
    return replace(trace, reproduces=reproduces(at, *heads[trace.key]))


def reproduces(at: Divergence, baseline: Head, candidate: Head) -> bool | None:
    """Whether the candidate's score turns to the candidate's token at the divergence, or moves the pair by D / 2.

    None where that cannot be told: an output ended there, or the score does not reach so far.
    """
    if at.baseline_id is None or at.candidate_id is None or at.position >= len(candidate.topk_ids):
        return None
    before, now = (tokens.is_top(side, at.position, at.candidate_id) for side in (baseline, candidate))
    if now and not before:
        return True
    old, new = (tokens.kept_pair(side, at.position, at.baseline_id, at.candidate_id) for side in (baseline, candidate))
    if at.movement is None or old is None or new is None:
        return False
    return abs((old[0] - old[1]) - (new[0] - new[1])) >= SHARE * abs(at.movement)
