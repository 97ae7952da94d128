"""Localisation by bits: the block where the difference enters, and how many executions agree on it. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from driftpin.comparison.facts import Comparison, Depth, TraceComparison
from driftpin.environment.environment import Equality
from driftpin.trace.probe import Probe
from driftpin.verdict.floors import STANDS_OUT, Floors

TINY = 1e-12  # a yardstick of zero: rounding does not move this block at all
BEHIND = "behind the last block (final norm or head)"
CHOICE = "behind the logits: they agree in every bit up to the divergence, so the choice differs, not the model"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a difference enters, or why that cannot be said."""

    found: bool
    sentence: str
    block: str | None = None
    index: int | None = None
    blocks: int | None = None
    canary: str | None = None
    position: int | None = None
    agreeing: int = 0  # executions that point to this block
    asked: int = 0  # executions that could point to one


def localise(comparison: Comparison, stack: Equality, floors: Floors | None = None) -> Place | None:
    """The block where bits part first; None when nothing parted.

    On a changed stack every block rounds differently, so bits say nothing about the place: there the first block
    counts whose hidden states moved more than three times as far as rounding moves them.
    """
    moved = [t for t in comparison.changed if not t.identical and not t.prompt and not t.mismatched]
    if not moved:
        return None
    if all(_only_chosen_otherwise(trace) for trace in moved):
        return _choice(moved)
    if stack is Equality.DIFFERENT:
        return _by_deviation(moved, floors)
    scored = [t for t in moved if t.key.probe is Probe.SCORE and t.depth] or [t for t in moved if t.depth]
    if not scored:
        return _nowhere("not localisable: " + (moved[0].depth_absent or "no layers were recorded"))
    return _commonest(scored)


def _only_chosen_otherwise(trace: TraceComparison) -> bool:
    """Tokens part although no raw logit moved before or at that position: a processor or a setting did it."""
    return trace.divergence is not None and trace.movement is not None and trace.movement.moved == 0


def _choice(traces: Sequence[TraceComparison]) -> Place:
    return Place(
        found=True,
        sentence=f"the difference enters {CHOICE} (see the sampling settings); {len(traces)} executions say so",
        canary=traces[0].key.canary,
        agreeing=len(traces),
        asked=len(traces),
    )


def _by_deviation(moved: Sequence[TraceComparison], floors: Floors | None) -> Place:
    """The first block that stands out above its own yardstick: the median over the scored canaries."""
    if floors is None or not floors.blocks:
        return _nowhere("not localisable: the stack changed, and the baseline has no rounding yardstick per block")
    profiles = [(trace.key.canary, dict(trace.deviation)) for trace in moved if trace.deviation]
    if not profiles:
        return _nowhere("not localisable: no score on both sides recorded comparable hidden states")
    blocks = [block for block in floors.blocks if all(block in profile for _, profile in profiles)]
    for index, block in enumerate(blocks):
        ratio = statistics.median(profile[block] for _, profile in profiles) / (floors.blocks[block] or TINY)
        if ratio > STANDS_OUT:
            return _stands_out(block, index, len(blocks), ratio, profiles[0][0], len(profiles))
    return _nowhere("no block stands out above its rounding yardstick: rounding throughout")


def _stands_out(block: str, index: int, blocks: int, ratio: float, canary: str, asked: int) -> Place:
    return Place(
        found=True,
        sentence=f"{block} (block {index + 1} of {blocks}) is the first that moved more than rounding does: "
        f"{ratio:.1f} times its yardstick, the median of {asked} scored canaries",
        block=block,
        index=index,
        blocks=blocks,
        canary=canary,
        agreeing=asked,
        asked=asked,
    )


def _nowhere(sentence: str) -> Place:
    return Place(found=False, sentence=sentence)


def _commonest(traces: Sequence[TraceComparison]) -> Place:
    """The earliest block among those that most executions name."""
    depths = [(trace, trace.depth) for trace in traces if trace.depth]
    votes = Counter(depth.block for _, depth in depths)
    most = max(votes.values())
    trace, depth = min(((t, d) for t, d in depths if votes[d.block] == most), key=lambda pair: _order(pair[1]))
    return Place(
        found=True,
        sentence=_sentence(depth, most, len(depths)),
        block=depth.block,
        index=depth.index,
        blocks=depth.blocks,
        canary=trace.key.canary,
        position=depth.position,
        agreeing=most,
        asked=len(depths),
    )


def _order(depth: Depth) -> int:
    return depth.blocks if depth.index is None else depth.index


def _sentence(depth: Depth, agreeing: int, asked: int) -> str:
    if depth.block is None:
        where = BEHIND
    elif depth.index == 0:
        where = f"in or before {depth.block} (block 1 of {depth.blocks}; the embeddings feed it)"
    else:
        before = "; all before it agree in every bit" if agreeing == asked else ""
        where = f"in {depth.block} (block {(depth.index or 0) + 1} of {depth.blocks}){before}"
    return f"the difference enters {where}; {agreeing} of {asked} executions say so"
