"""What the reference arm has to say of one native comparison, and the rule that weighs it. Pure.

The rule needs no float32 run of the candidate: blessing stored the reference's log-probabilities of the baseline's
tokens, and a one-sided sign test over canaries asks whether the candidate lies farther from them than the baseline
did. The unit is the canary, never the token: positions of one text are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from driftpin.comparison.distance import Distance
from driftpin.comparison.facts import Comparison
from driftpin.environment.environment import Equality
from driftpin.trace.probe import Probe
from driftpin.verdict.binomial import at_least
from driftpin.verdict.floors import Floors
from driftpin.verdict.outcome import Finding, Outcome

ALPHA = 0.01  # of being wrong once, shared by the tests that could be asked: one per probe whose numbers moved
DOUBT = 0.05  # a test above this is what chance does; between the two it is neither rounding nor a defect
FARTHER = 1.2  # a ratio below is no defect, however many canaries agree: a thousand canaries would make 1.01 certain
NEAR = 1.05  # what benign changes reach in the mean (DESIGN 7); a certain ratio between the two is neither
RESOLVED = 3.0  # baseline distance over the reference's own yardstick; below, the reference is no more precise


@dataclass(frozen=True, kw_only=True)
class ReferenceEvidence:
    """The reference arm beside a comparison: distances always, its own comparison where it ran for the candidate."""

    scored: bool = False  # whether the baseline holds reference scores at all
    distances: tuple[Distance, ...] = ()  # of native executions that changed
    floors: Floors | None = None  # of the reference arm, measured at blessing
    native: Floors | None = None  # of the native arm
    model: Equality = Equality.SAME  # the native model sections, generation settings included
    still: bool = False  # the native stack is not known to differ and the target repeats itself: no bit may move
    comparison: Comparison | None = None  # the reference's own traces, baseline against candidate
    stack: Equality = Equality.UNDETERMINED  # whether the reference ran on the baseline's stack
    missing: tuple[str, ...] = ()  # canaries that the reference arm could not measure this time
    absent: str | None = None  # why there is no `comparison`
    label: str | None = None  # what the reference is, where it is not the weights as they are
    replay: str | None = None  # id of the candidate's reference replay


@dataclass(frozen=True, kw_only=True)
class SignTest:
    """Is the candidate farther from the reference than the baseline was, canary by canary?"""

    probe: Probe
    ratio: float  # sum of the candidate's distances over the sum of the baseline's
    farther: int
    asked: int  # canaries whose distance changed at all; equal ones say nothing
    p_value: float  # probability of so many farther ones if both directions were equally likely
    resolved: bool  # the baseline's own distance stands above the reference's yardstick
    alpha: float = ALPHA  # its share (Bonferroni): half where both probes moved

    @property
    def significant(self) -> bool:
        """Farther in so many canaries, and by so much, that rounding does not explain it."""
        return self.resolved and self.p_value <= self.alpha and self.ratio >= FARTHER

    @property
    def doubtful(self) -> bool:
        """Too many farther for chance and too few to be sure; or surely farther, by less than a defect."""
        if not self.resolved or self.significant:
            return False
        return self.p_value <= DOUBT if self.ratio >= FARTHER else self.p_value <= self.alpha and self.ratio >= NEAR

    @property
    def words(self) -> str:
        """The observation, for a sentence."""
        size = "infinitely far" if math.isinf(self.ratio) else f"{self.ratio:.3g} times as far"
        return (
            f"the native {self.probe.value} lies {size} from it as at blessing "
            f"({self.farther} of {self.asked} canaries farther, p = {self.p_value:.2g})"
        )

    @property
    def powerless(self) -> bool:
        """So few canaries that even all of them together would not have been significant."""
        return 0.5**self.asked > self.alpha


def sign_test(distances: Sequence[Distance], probe: Probe, floors: Floors | None) -> SignTest | None:
    """The test over one probe's first executions; None where there is none to ask."""
    mine = [d for d in distances if d.key.probe is probe and d.key.repeat == 0 and d.baseline != d.candidate]
    if not mine:
        return None
    old, new = sum(d.baseline for d in mine), sum(d.candidate for d in mine)
    farther = sum(d.candidate > d.baseline for d in mine)
    yardstick = floors.logprob if floors else 0.0
    return SignTest(
        probe=probe,
        ratio=new / old if old > 0 else math.inf,
        farther=farther,
        asked=len(mine),
        p_value=at_least(farther, len(mine)),
        resolved=old / len(mine) > RESOLVED * yardstick,
    )


def sign_tests(evidence: ReferenceEvidence) -> tuple[SignTest, ...]:
    """Scores first, then decodes, which also pass through the key-value cache; both share `ALPHA`."""
    asked = (sign_test(evidence.distances, probe, evidence.floors) for probe in (Probe.SCORE, Probe.DECODE))
    tests = [test for test in asked if test is not None]
    return tuple(replace(test, alpha=ALPHA / len(tests)) for test in tests)


def without(evidence: ReferenceEvidence | None, canaries: frozenset[str]) -> ReferenceEvidence | None:
    """The same, silent about canaries that the suite itself redefined: they were asked something else."""
    if evidence is None or not canaries:
        return evidence
    own = evidence.comparison
    return replace(
        evidence,
        distances=tuple(d for d in evidence.distances if d.key.canary not in canaries),
        comparison=own and replace(own, changed=tuple(t for t in own.changed if t.key.canary not in canaries)),
    )


def farther_canaries(evidence: ReferenceEvidence | None) -> dict[str, Finding]:
    """By canary: `shifted`, where a significant test says that rounding is no explanation of its distance."""
    if evidence is None:
        return {}
    guilty = {test.probe for test in sign_tests(evidence) if test.significant}
    found = (d for d in evidence.distances if d.key.probe in guilty and d.ratio >= FARTHER)
    return {d.key.canary: _farther(d) for d in found}


def _farther(distance: Distance) -> Finding:
    why = (
        f"tokens agree or only tie, but the {distance.key.probe.value} lies {distance.ratio:.3g} times as far from "
        f"the reference as at blessing ({distance.candidate:.2g} against {distance.baseline:.2g} nats)"
    )
    return Finding(outcome=Outcome.SHIFTED, why=why, key=distance.key)
