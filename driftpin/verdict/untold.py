"""Why neither rounding nor a defect is said beside a calm reference: each reason in a sentence. Pure.

Silence of a test is not agreement. Whatever nearly spoke, could not have spoken, or was not asked stands here.
"""

from __future__ import annotations

from collections.abc import Sequence

from driftpin.comparison.facts import Comparison, TraceComparison
from driftpin.trace.probe import Probe
from driftpin.verdict.crowd import Crowd
from driftpin.verdict.evidence import FARTHER, ReferenceEvidence, SignTest

UNWEIGHED = "no log-probability of the baseline's tokens shows what moved, so the reference has nothing to weigh"
SMALL = "that is not chance, and no more than a movement of two yardsticks makes do it"
UNSURE = "too many for chance, too few to be sure; more canaries would tell"


def why_untold(
    comparison: Comparison,
    evidence: ReferenceEvidence,
    tests: Sequence[SignTest],
    told: Sequence[Crowd],
    far: Sequence[TraceComparison],
) -> str | None:
    """None where rounding may be said."""
    return (
        (None if tests else UNWEIGHED)
        or _doubtful(tests)
        or _weak(tests)
        or _crowded(told)
        or _far_behind_a_router(far)
        or _only_decoded(comparison, evidence)
    )


def why_unpaired(comparison: Comparison, evidence: ReferenceEvidence) -> str | None:
    """What moved must have been asked of the reference too, at least in part."""
    own = evidence.comparison or comparison
    asked = {key.canary for key in own.identical} | {t.key.canary for t in own.changed if not t.mismatched}
    moved = {t.key.canary for t in comparison.changed if not t.identical and not t.mismatched}
    return None if moved & asked or not moved else "the reference arm did not measure the canaries that moved"


def _doubtful(tests: Sequence[SignTest]) -> str | None:
    """Farther in more canaries than chance explains, though not in enough, or not by enough, to be sure."""
    test = next((test for test in tests if test.doubtful), None)
    if test is None:
        return None
    if test.ratio < FARTHER:
        return f"{test.words}: that is not chance, and less than the {FARTHER:g} from which it is called a defect"
    return f"{test.words}: {UNSURE}"


def _weak(tests: Sequence[SignTest]) -> str | None:
    """Where a test could not have spoken, a greater distance in every canary is no rounding on its silence.

    That the other probe's test could have is no help: a score knows nothing of the cache that a decode passes through.
    """
    mute = (test for test in tests if test.resolved and test.powerless)
    far = next((test for test in mute if test.ratio >= FARTHER and test.farther == test.asked), None)
    if far is None:
        return None
    many = "1 canary is" if far.asked == 1 else f"{far.asked} canaries are"
    lie = "it lies" if far.asked == 1 else "all of them lie"
    return f"{many} too few for the sign test, and {lie} {far.ratio:.3g} times as far"


def _crowded(told: Sequence[Crowd]) -> str | None:
    """As many decodes as rounding hardly takes there."""
    crowd = next((crowd for crowd in told if crowd.doubtful), None)
    return None if crowd is None else f"{crowd.words}: {UNSURE if crowd.many else SMALL}"


def _far_behind_a_router(far: Sequence[TraceComparison]) -> str | None:
    """Where experts tie, rounding makes a router fall the other way, and so does a small defect."""
    if not far:
        return None
    count = f"{len(far)} executions part" if len(far) > 1 else f"{far[0].key.canary} parts"
    unrecorded = all(trace.routing is None for trace in far)
    why = "and no routing was recorded" if unrecorded else "behind a router that chose other experts"
    return f"{count} by far more than rounding moves two tokens, {why}"


def _only_decoded(comparison: Comparison, evidence: ReferenceEvidence) -> str | None:
    """Where no recorded fact of the stack changed, decoding alone cannot have rounded otherwise for a known reason.

    A cache, a batch behind the declaration or a defect of the decoding path may have done it; the reference arm, which
    scores, has none of them and cannot tell.
    """
    if not evidence.still:
        return None
    scores = [t for t in comparison.changed if t.key.probe is Probe.SCORE]
    scored = bool(scores) or any(key.probe is Probe.SCORE for key in comparison.identical)
    if not all(t.identical for t in scores):
        return None
    if not scored:
        return "only decoding was asked, on an unchanged stack, and the reference only scores"
    return "only decoding moved, on an unchanged stack: every score agrees in every bit, and the reference only scores"
