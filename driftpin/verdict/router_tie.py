"""Routers that fell the other way at a tie: what rounding does to a mixture of experts. Pure.

Two experts that score alike are exchanged by the least rounding, and then a token's whole update is another one: the
jump is as wide as experts differ, whatever the size of the rounding. So such a jump is no measure of a change.
"""

from __future__ import annotations

from driftpin.comparison.facts import Rerouted, Routing

NEAR_TIE = 0.05  # share of positions with another expert: a router tie or two, not another router


def at_a_tie(router: Rerouted, positions: int) -> bool:
    """Hardly any position was routed otherwise; a router that changed itself does so all over the text."""
    return router.count <= max(1.0, NEAR_TIE * positions)


def only_ties(routing: Routing | None) -> bool:
    """Some router chose otherwise, and none of them at more positions than ties explain."""
    return routing is not None and all(at_a_tie(router, routing.positions) for router in routing.changed)
