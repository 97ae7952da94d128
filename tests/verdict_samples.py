"""Comparisons and reference evidence for tests of verdicts: built by hand, judged as the product judges them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driftpin.comparison.distance import Distance
from driftpin.comparison.facts import (
    Comparison,
    Divergence,
    Movement,
    TraceComparison,
)
from driftpin.environment.environment import Equality
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.crowd import condemned, crowds
from driftpin.verdict.diagnosis import ChangeClass, Diagnosis, diagnose
from driftpin.verdict.evidence import ReferenceEvidence, farther_canaries
from driftpin.verdict.floors import Floors
from driftpin.verdict.outcome import canary_verdicts

FLOORS = Floors(pair=0.5, logprob=0.02, by_canary={}, blocks={}, samples=100, seeds=4)
REFERENCE_FLOORS = replace(FLOORS, pair=1e-5, logprob=2e-6)


def key(canary: str, probe: Probe = Probe.SCORE) -> TraceKey:
    return TraceKey(canary=canary, probe=probe)


def moved(size: float) -> Movement:
    return Movement(positions=5, moved=5, first_moved=0, mean_abs_logprob=size, max_abs_logprob=size, max_pair=0.1)


def trace(canary: str, size: float, probe: Probe = Probe.SCORE, **parts: Any) -> TraceComparison:
    return TraceComparison(
        **{"key": key(canary, probe), "identical": False, "tokens_equal": True, "movement": moved(size), **parts}
    )


def comparison(*changed: TraceComparison, identical: tuple[str, ...] = ()) -> Comparison:
    order = dict.fromkeys([*(t.key.canary for t in changed), *identical])
    return Comparison(order=tuple(order), changed=changed, identical=tuple(key(c) for c in identical))


def far(count: int, of: int, by: float = 2.0, probe: Probe = Probe.SCORE) -> tuple[Distance, ...]:
    """`of` canaries of which `count` lie `by` times as far as before, the others a little nearer."""
    ratios = [by if n < count else 0.95 for n in range(of)]
    pairs = [(f"c{n:02}", 0.03 * ratio) for n, ratio in enumerate(ratios)]
    return tuple(Distance(key=key(c, probe), positions=5, baseline=0.03, candidate=new) for c, new in pairs)


def calm(*, floors: Floors = REFERENCE_FLOORS, **parts: Any) -> ReferenceEvidence:
    """A reference that moved by half its limit on another stack."""
    own = comparison(*(trace(f"c{n:02}", 2e-6) for n in range(12)))
    return ReferenceEvidence(**{"floors": floors, "comparison": own, "stack": Equality.DIFFERENT, **parts})


NATIVE = comparison(*(trace(f"c{n:02}", 0.025) for n in range(12)))


def diagnosed(evidence: ReferenceEvidence | None, native: Comparison = NATIVE) -> Diagnosis:
    """The diagnosis as `judge` makes it, of a target that repeats itself."""
    floors = (evidence.native if evidence else None) or FLOORS
    told = crowds(native, floors)
    canaries = canary_verdicts(native, floors, condemned(told) | farther_canaries(evidence))
    found = diagnose(native, evidence, canaries, told)
    assert found is not None
    return found


def word(evidence: ReferenceEvidence | None, native: Comparison = NATIVE) -> ChangeClass | None:
    return diagnosed(evidence, native).word


TIE = Divergence(
    position=3,
    baseline_id=1,
    candidate_id=2,
    baseline_margin=0.1,
    candidate_margin=0.1,
    movement=0.2,
    missing=None,
    before="",
    baseline_text="x",
    candidate_text="y",
    both_top=True,
)


def parted(movement: float | None, *, top: bool = True) -> Comparison:
    """One decode of twelve canaries parts by that much; F is 0.5."""
    at = replace(TIE, position=2, movement=movement, both_top=top)
    return comparison(trace("c00", 0.01, Probe.DECODE, divergence=at), *(trace(f"c{n:02}", 0.02) for n in range(1, 12)))
