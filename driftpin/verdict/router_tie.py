"""Routers that fell the other way at a tie: what rounding does to a mixture of experts. Pure.

Two experts that score alike are exchanged by the least rounding, and then a token's whole update is another one: the
jump is as wide as experts differ, whatever the size of the rounding. So such a jump names no block.

This only ever *excuses a block*, on another stack, from being called the place; whether the movement is rounding or a
defect is not decided by it (`crowd.py` counts canaries for that). Hence the share is taken high: see `at_a_tie`.
"""

from __future__ import annotations

from driftpin.comparison.facts import Rerouted, Routing
from driftpin.verdict.binomial import at_least
from driftpin.verdict.floors import QUANTILE, Floors

NEAR_TIE = 0.05  # share of positions with another expert, where the baseline has measured none


def at_a_tie(router: Rerouted, positions: int, floors: Floors | None) -> bool:
    """No more positions were routed otherwise than rounding does; a router that changed does so all over the text.

    Rounding's own share was measured at blessing, at the worst of canaries and seeds; one position is always allowed,
    and more of them up to the 99.9 % quantile of a binomial with that share.
    """
    share = floors.routers.get(router.module) if floors else None
    if share is None:
        return router.count <= max(1.0, NEAR_TIE * positions)
    return router.count <= 1 or at_least(router.count, positions, share) > 1 - QUANTILE


def only_ties(routing: Routing | None, floors: Floors | None) -> bool:
    """Some router chose otherwise, and none of them at more positions than ties explain."""
    return routing is not None and all(at_a_tie(router, routing.positions, floors) for router in routing.changed)
