"""More canaries than rounding explains: what no single decode proves, their number may. Pure.

Three things that rounding does to some decodes: it parts their texts, it moves them beyond their limit up to there, and
it makes a pair of logits jump. When and how often it does each was measured at blessing, on every canary and seed; a
count above the 99.9 % quantile of that is no rounding. The unit is the canary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from driftpin.comparison.facts import Comparison, TraceComparison
from driftpin.verdict.binomial import at_least, foreseen
from driftpin.verdict.floors import QUANTILE, SHIFT, Floors, is_far
from driftpin.verdict.outcome import CanaryVerdict, Finding, Outcome, tie_limit
from driftpin.verdict.texts import counts, decoded_canaries

DOUBT = 0.05  # a count less likely than this and likelier than 0.1 % is neither chance nor proof


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Canaries whose decode did what rounding does to few of them."""

    found: Mapping[str, Finding]  # by canary
    asked: int  # canaries that could have done it
    p_value: float  # of so many or more, by what rounding did at blessing
    least: float  # share of canaries that a movement of SHIFT yardsticks makes do it; fewer are no shift
    surely: bool = True  # more than that share, and by more than chance
    what: str  # they did, for a sentence

    @property
    def significant(self) -> bool:
        """Rounding does not explain so many, and a movement of SHIFT yardsticks would not make more."""
        return self._improbable and self.many and self.surely

    @property
    def doubtful(self) -> bool:
        """Too many for chance, too few to be sure; or surely too many, and still few."""
        if self.significant or not self.found:
            return False
        return self.p_value <= DOUBT if self.many else self._improbable

    @property
    def _improbable(self) -> bool:
        return bool(self.found) and self.p_value <= 1 - QUANTILE

    @property
    def many(self) -> bool:
        """At least as many as a movement of SHIFT yardsticks makes do it on average."""
        return len(self.found) >= self.least * self.asked

    @property
    def words(self) -> str:
        """The observation, for a sentence."""
        return f"{len(self.found)} of {self.asked} {self.what} (p = {self.p_value:.2g})"


def crowds(comparison: Comparison, floors: Floors | None) -> tuple[Crowd, ...]:
    """Those of which blessing measured what they are held against; none where nothing moved."""
    if not comparison.changed:  # a thousand identical canaries are counted for nobody
        return ()
    asked = (parted_early(comparison, floors), moved_beyond(comparison, floors), parted_far(comparison, floors))
    return tuple(crowd for crowd in asked if crowd is not None)


def condemned(told: Sequence[Crowd]) -> dict[str, Finding]:
    """By canary: why it is one of too many; what parted far is a `flip` already."""
    return {canary: finding for crowd in told if crowd.significant for canary, finding in crowd.found.items()}


def parted_early(comparison: Comparison, floors: Floors | None) -> Crowd | None:
    """Texts that part before every seed of the yardstick would have parted them; None where that was not measured.

    If the candidate is one more rounding, it is as likely as any seed to be the first: one in seeds + 1, ties apart; if
    it moves SHIFT times as far, and texts part in proportion, SHIFT in seeds + SHIFT. A rank test, so it does not
    matter how often texts part (those of a tiny model do in most seeds). Only between two arg-maxes of raw logits: the
    yardstick knows no processor that chooses beside them.
    """
    if floors is None or floors.earliest is None:
        return None
    found = {t.key.canary: _early(t, floors) for t in _decodes(comparison) if _is_early(t, floors)}
    asked = len(decoded_canaries(comparison))
    p_value = at_least(len(found), asked, 1 / (floors.seeds + 1))
    least, what = SHIFT / (floors.seeds + SHIFT), "texts part before rounding parts them in any seed"
    surely = at_least(len(found), asked, least) <= DOUBT
    return Crowd(found=found, asked=asked, p_value=p_value, least=least, surely=surely, what=what)


def moved_beyond(comparison: Comparison, floors: Floors | None) -> Crowd | None:
    """Decodes whose mean |Δ log-prob| is above their canary's shift limit; None where rounding's share is not known.

    One that parts at its first token has no mean and is not asked.
    """
    if floors is None or floors.beyond is None or floors.beyond_yardstick is None:
        return None
    found = {t.key.canary: _beyond(t, floors) for t in _decodes(comparison) if _is_beyond(t, floors)}
    mute = sum(_shared(t) == 0 for t in _decodes(comparison))
    asked = len(decoded_canaries(comparison)) - mute
    what, least = "decodes moved beyond their limit", floors.beyond_yardstick
    p_value = _by_share(len(found), asked, floors.beyond, floors)
    return Crowd(found=found, asked=asked, p_value=p_value, least=least, what=what)


def parted_far(comparison: Comparison, floors: Floors | None) -> Crowd | None:
    """Decodes that part by more than FAR times F, whatever their routers did; None where the share is not known."""
    if floors is None or floors.far_parting is None:
        return None
    what = "canaries part by far more than rounding moves two tokens"
    far = (t for t in _decodes(comparison) if is_far_flip(t, floors))
    found = {t.key.canary: Finding(outcome=Outcome.FLIP, why=what, key=t.key) for t in far}
    asked = len(decoded_canaries(comparison))
    p_value, least = _by_share(len(found), asked, floors.far_parting, floors), SHIFT * floors.far_parting
    return Crowd(found=found, asked=asked, p_value=p_value, least=least, what=what)


def far_flips(
    comparison: Comparison, floors: Floors | None, canaries: Sequence[CanaryVerdict]
) -> list[TraceComparison]:
    """Executions that part far, of canaries that are called flips: where repeats vote, one of them decides nothing."""
    flipped = {c.canary for c in canaries if Outcome.FLIP in c.outcomes}
    moved = (t for t in comparison.changed if t.key.canary in flipped)
    return [] if floors is None else [t for t in moved if is_far_flip(t, floors)]


def is_far_flip(trace: TraceComparison, floors: Floors) -> bool:
    """Both sides emitted an arg-max of their own raw logits, and D is no matter of rounding, as far as pairs go."""
    at = trace.divergence
    return at is not None and at.both_top and is_far(at.movement, tie_limit(at, floors))


def _by_share(count: int, asked: int, share: float, floors: Floors) -> float:
    seen = float(len(floors.parting) * floors.seeds)
    return foreseen(count, asked, share * seen, seen)


def _decodes(comparison: Comparison) -> Iterator[TraceComparison]:
    return (t for t in comparison.changed if counts(t.key) and not t.prompt and not t.mismatched)


def _is_early(trace: TraceComparison, floors: Floors) -> bool:
    at, canary = trace.divergence, trace.key.canary
    if at is None or not at.both_top or canary not in floors.parting:
        return False
    first = (floors.earliest or {}).get(canary)
    return first is None or at.position < first


def _early(trace: TraceComparison, floors: Floors) -> Finding:
    first = (floors.earliest or {}).get(trace.key.canary)
    when = "in no seed" if first is None else f"at output {first} at the earliest"
    position = trace.divergence.position if trace.divergence else None
    why = f"its text parts at output {position}, which rounding alone does {when}, and so do too many"
    return Finding(outcome=Outcome.SHIFTED, why=why, key=trace.key)


def _shared(trace: TraceComparison) -> int:
    """Output tokens in front of the divergence; the divergence itself has no log-probability in common."""
    return 0 if trace.movement is None else trace.movement.positions - (trace.divergence is not None)


def _is_beyond(trace: TraceComparison, floors: Floors) -> bool:
    moved = trace.movement
    return moved is not None and moved.mean_abs_logprob > floors.shift_limit(trace.key.canary)


def _beyond(trace: TraceComparison, floors: Floors) -> Finding:
    size, limit = trace.movement.mean_abs_logprob if trace.movement else 0.0, floors.shift_limit(trace.key.canary)
    why = f"up to where its text parts the decode's mean |Δ log-prob| is {size:.2g}, above {limit:.2g}, as in too many"
    return Finding(outcome=Outcome.SHIFTED, why=why, key=trace.key)
