"""Localisation by bits, on the same stack: the first (position, block) whose output differs while its inputs agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from driftpin.comparison.facts import Depth, TraceComparison
from driftpin.verdict.place_value import ROUTER, How, Place, not_localisable

BEHIND = "behind the last block (final norm or head)"

Found = tuple[TraceComparison, Depth]


def by_bits(traces: Sequence[TraceComparison]) -> Place:
    """The block that most executions name, the earliest of equals, with the earliest position in it."""
    found = [(trace, trace.depth) for trace in traces if trace.depth]
    if not found:
        return not_localisable(next((t.depth_absent for t in traces if t.depth_absent), "no layers were recorded"))
    votes = Counter(depth.block for _, depth in found)
    most = max(votes.values())
    trace, depth = min((pair for pair in found if votes[pair[1].block] == most), key=_order)
    how, router = _routed(trace, depth)
    return Place(
        found=True,
        sentence=f"the difference enters {_where(depth, most == len(found))}; {most} of {len(found)} executions say so"
        + _earlier(found, depth)
        + router,
        block=depth.block,
        index=depth.index,
        blocks=depth.blocks,
        canary=trace.key.canary,
        position=depth.position,
        agreeing=most,
        asked=len(found),
        how=how,
        label=ROUTER if any(t.routing for t, _ in found) else None,
    )


def _order(pair: Found) -> tuple[int, int]:
    """By block, then by position; a prefill, which has none, came first."""
    depth = pair[1]
    return depth.blocks if depth.index is None else depth.index, -1 if depth.position is None else depth.position


def _where(depth: Depth, agreed: bool) -> str:
    noted = f"{depth.note}; compared by module path" if depth.note else ""
    if depth.block is None:
        return f"behind the last block that both have ({noted})" if noted else BEHIND
    number = f"block {(depth.index or 0) + 1} of {depth.blocks}"
    told = f"{number}; {noted}" if noted else number
    if depth.index == 0:
        return f"in or before {depth.block} ({told}; the embeddings feed it)"
    return f"in {depth.block} ({told})" + ("; all before it agree in every bit" if agreed else "")


def _earlier(found: Sequence[Found], named: Depth) -> str:
    """Fewer executions may name an earlier block: a fault that not every input reaches."""
    order = _rank(named)
    others = sorted({(_rank(d), d.block or "") for _, d in found if _rank(d) < order})
    count = sum(_rank(d) < order for _, d in found)
    return f", {count} an earlier one ({others[0][1]})" if others else ""


def _rank(depth: Depth) -> int:
    return depth.blocks if depth.index is None else depth.index


def _routed(trace: TraceComparison, depth: Depth) -> tuple[How, str]:
    """What the routers did in the execution that is shown."""
    if trace.routing is None:
        return How.BITS, ""
    first, own = trace.routing.first, trace.routing.inside(depth.block or "")
    if own is not None and own.position == depth.position:
        said = f"its router {own.module} chose other experts there although what enters the block agrees"
        return How.ROUTER, f"; {said} ({own.count} of {trace.routing.positions} positions)"
    return How.BITS, f"; the first other choice of experts is in {first.module} at position {first.position}"
