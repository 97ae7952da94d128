"""Localisation by deviation, on another stack: the block at which hidden states leave their rounding yardstick.

There every block rounds differently, so bits accuse all of them. The yardstick was measured by disturbing the
embeddings, so it grows from block to block as rounding does, and the ratio of a deviation to it stays level until
something else enters: the block of entry is where that ratio jumps, not merely where it passes a limit.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftpin.comparison.facts import Routing, TraceComparison
from driftpin.verdict.floors import STANDS_OUT, Floors
from driftpin.verdict.place_value import ROUTER, How, Place, not_localisable, nowhere
from driftpin.verdict.router_tie import at_a_tie, only_ties

RESOLUTION = 2.0**-23  # of a sketch: stands for a yardstick of zero where no block has another
MOST = 1e12  # of a ratio, so that jumps between ratios are finite
CREEPS = 2.0  # a ratio that grows by less from one block to the next is rounding that adds up
FEW = 0.25  # a smaller share of canaries has to stand out STANDS_OUT times as far
CALM_BLOCKS = "no single block stands out above its rounding yardstick"
ROUNDING = "no block stands out above its rounding yardstick: rounding throughout"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One canary's ratios of deviation to yardstick, block by block, and where they leave it."""

    trace: TraceComparison
    ratios: tuple[float, ...]
    entry: int | None  # None: nothing stands out, or the ratio creeps up
    creeps: bool

    @property
    def ratio(self) -> float:
        """At the entry; 0 where there is none."""
        return 0.0 if self.entry is None else self.ratios[self.entry]

    @property
    def before(self) -> float:
        """In front of the entry."""
        return _before(self.ratios, self.entry or 0)


def by_deviation(traces: Sequence[TraceComparison], floors: Floors | None) -> Place:
    """The block of entry that most of the canaries name which stand out."""
    if floors is None or not floors.blocks:
        return not_localisable("the stack changed, and the baseline has no rounding yardstick per block")
    profiled = [trace for trace in traces if trace.deviation]
    if not profiled:
        why = next((t.depth_absent for t in traces if t.depth_absent), "no score on both sides has hidden states")
        return not_localisable(f"the stack changed, so bits say nothing, and {why}")
    blocks = [block for block, _ in profiled[0].deviation if block in floors.blocks]
    profiles = [_profile(trace, blocks, floors.blocks) for trace in profiled]
    entered = _standing_out(profiles, blocks, floors)
    if not entered:
        return nowhere(_quiet(profiles, blocks, floors))
    return _place(profiles, entered, blocks)


def entry(ratios: Sequence[float]) -> int | None:
    """The block where the ratio jumps, by index; None where it never stands out, or creeps up with no jump.

    Of the blocks above `STANDS_OUT`, the first whose jump over the block before it is at least the root of the
    largest jump: a later one is then its echo, an earlier one rounding that had added up.
    """
    jumps = {i: ratio / _before(ratios, i) for i, ratio in enumerate(ratios) if ratio > STANDS_OUT}
    largest = max(jumps.values(), default=0.0)
    if largest < CREEPS:
        return None
    return next(i for i, jump in jumps.items() if jump >= max(CREEPS, math.sqrt(largest)))


def _before(ratios: Sequence[float], index: int) -> float:
    """The ratio in front of a block: 1, the yardstick itself, where it is lower or there is no block."""
    return max(ratios[index - 1] if index else 1.0, 1.0)


def _profile(trace: TraceComparison, blocks: Sequence[str], yardstick: Mapping[str, float]) -> Profile:
    moved = dict(trace.deviation)
    least = min((size for size in yardstick.values() if size > 0), default=RESOLUTION)
    ratios = tuple(min(moved.get(b, 0.0) / (yardstick[b] or least), MOST) for b in blocks)  # finite: jumps are ratios
    found = entry(ratios)
    return Profile(
        trace=trace, ratios=ratios, entry=found, creeps=found is None and max(ratios, default=0) > STANDS_OUT
    )


def _standing_out(profiles: Sequence[Profile], blocks: Sequence[str], floors: Floors) -> list[Profile]:
    """Those with an entry, if they are enough to be believed.

    A fault may show in few canaries (an expert that few tokens reach, a long context), so a few are believed where
    they stand out by far; a few whose router merely fell the other way at a tie are not.
    """
    found = [profile for profile in profiles if profile.entry is not None]
    if len(found) >= FEW * len(profiles):
        return found
    return [p for p in found if p.ratio > STANDS_OUT**2 and not _near_tie(p, blocks, floors)]


def _near_tie(profile: Profile, blocks: Sequence[str], floors: Floors) -> bool:
    """The block's own router chose otherwise at no more positions than rounding does where experts nearly tie."""
    routing = profile.trace.routing
    own = routing.inside(blocks[profile.entry or 0]) if routing else None
    return routing is not None and own is not None and at_a_tie(own, routing.positions, floors)


def _place(profiles: Sequence[Profile], entered: Sequence[Profile], blocks: Sequence[str]) -> Place:
    votes = Counter(profile.entry for profile in entered)
    most = max(votes.values())
    index = min(i for i, count in votes.items() if count == most and i is not None)
    mine = [profile for profile in entered if profile.entry == index]
    trace = mine[0].trace
    own = next((r for p in mine if p.trace.routing and (r := p.trace.routing.inside(blocks[index]))), None)
    ratio, before = (statistics.median(getattr(p, part) for p in mine) for part in ("ratio", "before"))
    depth = trace.depth
    total = depth.blocks if depth else len(blocks)
    return Place(
        found=True,
        sentence=f"the difference enters in {blocks[index]} (block {index + 1} of {total}"
        + (f"; {depth.note}; compared by module path)" if depth and depth.note else ")")
        + f": {_times(ratio)} times its rounding yardstick, {_level(before)}"
        + f"; {most} of {len(profiles)} scored canaries say so{_sinks(profiles)}"
        + (f"; its router {own.module} chose other experts first at position {own.position}" if own else ""),
        block=blocks[index],
        index=index,
        blocks=total,
        canary=trace.key.canary,
        position=own.position if own else None,
        agreeing=most,
        asked=len(profiles),
        how=How.DEVIATION,
        label=ROUTER if own else None,
    )


def _level(before: float) -> str:
    return "within it before" if before <= STANDS_OUT else f"{_times(before)} times in front of it"


def _times(ratio: float) -> str:
    if ratio >= MOST:
        return "immeasurably many"
    return f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"


def _quiet(profiles: Sequence[Profile], blocks: Sequence[str], floors: Floors) -> str:
    """Nothing stands out: why, and what else is known."""
    creeping = [profile for profile in profiles if profile.creeps]
    if len(creeping) >= FEW * len(profiles):
        first = min(next(i for i, r in enumerate(p.ratios) if r > STANDS_OUT) for p in creeping)
        return (
            f"not localisable: hidden states leave their rounding yardstick little by little, from {blocks[first]} on; "
            "no one block does it"
        )
    behind = [profile for profile in profiles if _shifted(profile, floors)]
    if len(behind) >= FEW * len(profiles):
        return (
            "no block stands out above its rounding yardstick, but log-probabilities moved more than rounding moves "
            f"them: the difference enters behind the last block (final norm or head); {len(behind)} of "
            f"{len(profiles)} scored canaries say so"
        )
    routed = [p.trace.routing for p in profiles if p.trace.routing]
    tie = all(only_ties(one, floors) for one in routed)
    return (ROUNDING if tie else CALM_BLOCKS) + _sinks(profiles) + _rerouted(routed, len(profiles), tie=tie)


def _shifted(profile: Profile, floors: Floors) -> bool:
    moved = profile.trace.movement
    return moved is not None and moved.mean_abs_logprob > floors.shift_limit(profile.trace.key.canary)


def _sinks(profiles: Sequence[Profile]) -> str:
    count = sum(profile.trace.sinks for profile in profiles)
    return f" ({count} attention-sink positions left out)" if count else ""


def _rerouted(routed: Sequence[Routing], asked: int, *, tie: bool) -> str:
    if not routed:
        return ""
    first, share = routed[0].first, f"{len(routed)} of {asked} canaries"
    said = "near a router's tie, as rounding does it" if tie else "at more positions than rounding does it"
    return f"; other experts were chosen in {share}, first in {first.module} at position {first.position}: {said}"
