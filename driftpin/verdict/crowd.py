"""More canaries than rounding explains: what no single decode proves, their number may. Pure.

A decode is compared up to its divergence, often over a few tokens, and one such mean says little. How often rounding
alone takes a beginning of a text beyond its limit, and how often it makes a pair jump, was measured at blessing on
every canary and seed; a count above the 99.9 % quantile of that is no rounding. The unit is the canary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driftpin.comparison.facts import Comparison, TraceComparison
from driftpin.verdict.binomial import foreseen
from driftpin.verdict.floors import QUANTILE, Floors, is_far
from driftpin.verdict.outcome import Finding, Outcome, tie_limit
from driftpin.verdict.texts import counts, decoded_canaries

DOUBT = 0.05  # a count less likely than this and likelier than 0.1 % is neither chance nor proof


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Canaries whose decode did what rounding does to few of them."""

    traces: Mapping[str, TraceComparison]  # by canary
    asked: int  # canaries that could have done it
    p_value: float  # of so many or more, by what rounding did at blessing

    @property
    def significant(self) -> bool:
        """Rounding does not explain so many."""
        return bool(self.traces) and self.p_value <= 1 - QUANTILE

    @property
    def doubtful(self) -> bool:
        """Too many for chance, too few to be sure."""
        return bool(self.traces) and not self.significant and self.p_value <= DOUBT


def crowded(crowd: Crowd | None, floors: Floors | None) -> dict[str, Finding]:
    """By canary: `shifted`, where a significant crowd of decodes moved beyond their limits."""
    if crowd is None or floors is None or not crowd.significant:
        return {}
    many = f"as {len(crowd.traces)} of {crowd.asked} do, where rounding makes few (p = {crowd.p_value:.2g})"
    return {canary: _shifted(trace, floors, many) for canary, trace in crowd.traces.items()}


def _shifted(trace: TraceComparison, floors: Floors, many: str) -> Finding:
    size, limit = trace.movement.mean_abs_logprob if trace.movement else 0.0, floors.shift_limit(trace.key.canary)
    why = f"up to where its text parts the decode's mean |Δ log-prob| is {size:.2g}, above {limit:.2g}, {many}"
    return Finding(outcome=Outcome.SHIFTED, why=why, key=trace.key)


def moved_beyond(comparison: Comparison, floors: Floors | None) -> Crowd | None:
    """Decodes whose mean |Δ log-prob| is above their canary's shift limit; None where rounding's share is not known.

    One that parts at its first token has no mean and is not asked.
    """
    if floors is None or floors.beyond is None:
        return None
    found = {t.key.canary: t for t in _decodes(comparison) if _is_beyond(t, floors)}
    mute = sum(_shared(t) == 0 for t in _decodes(comparison))
    return _crowd(found, len(decoded_canaries(comparison)) - mute, floors.beyond, floors)


def parted_far(comparison: Comparison, floors: Floors | None) -> Crowd | None:
    """Decodes that part by more than FAR times F, whatever their routers did; None where the share is not known."""
    if floors is None or floors.far_parting is None:
        return None
    found = {t.key.canary: t for t in _decodes(comparison) if is_far_flip(t, floors)}
    return _crowd(found, len(decoded_canaries(comparison)), floors.far_parting, floors)


def is_far_flip(trace: TraceComparison, floors: Floors) -> bool:
    """Both sides emitted an arg-max of their own raw logits, and D is no matter of rounding, as far as pairs go."""
    at = trace.divergence
    return at is not None and at.both_top and is_far(at.movement, tie_limit(at, floors))


def _decodes(comparison: Comparison) -> list[TraceComparison]:
    return [t for t in comparison.changed if counts(t.key) and not t.prompt and not t.mismatched]


def _shared(trace: TraceComparison) -> int:
    """Output tokens in front of the divergence; the divergence itself has no log-probability in common."""
    return 0 if trace.movement is None else trace.movement.positions - (trace.divergence is not None)


def _is_beyond(trace: TraceComparison, floors: Floors) -> bool:
    moved = trace.movement
    return moved is not None and moved.mean_abs_logprob > floors.shift_limit(trace.key.canary)


def _crowd(found: Mapping[str, TraceComparison], asked: int, share: float, floors: Floors) -> Crowd:
    seen = float(len(floors.parting) * floors.seeds)
    return Crowd(traces=found, asked=asked, p_value=foreseen(len(found), asked, share * seen, seen))
