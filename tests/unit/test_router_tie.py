"""What rounding does to routers: measured at blessing, and no more than that is a tie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from store_samples import head, layers

from driftpin.comparison.facts import Rerouted, Routing
from driftpin.trace.layers import Layers
from driftpin.verdict.floors import Floors, Perturbed, floors_of
from driftpin.verdict.router_tie import at_a_tie, only_ties

ROUTER = "layers.1.mlp"
BARE = Floors(pair=0.25, logprob=0.02, by_canary={}, blocks={}, samples=100, seeds=4)


def routed(*counts: int, positions: int = 17) -> Routing:
    changed = tuple(Rerouted(module=f"layers.{n}.mlp", position=3, count=count) for n, count in enumerate(counts))
    return Routing(positions=positions, changed=changed)


@pytest.mark.parametrize(
    ("share", "most"),
    [(0.0, 1), (0.001, 1), (0.01, 2), (0.06, 5), (0.5, 15)],  # the largest count with P(X >= count) above 0.1 %
)
def test_a_router_may_choose_otherwise_as_often_as_rounding_makes_it(share: float, most: int) -> None:
    floors = replace(BARE, routers={"layers.0.mlp": share})
    allowed = [at_a_tie(routed(count).first, 17, floors) for count in range(1, 18)]
    assert allowed == [True] * most + [False] * (17 - most)


def test_a_baseline_that_measured_no_routers_allows_a_twentieth_of_the_text() -> None:
    for floors in (None, BARE):
        assert at_a_tie(routed(2, positions=40).first, 40, floors)
        assert not at_a_tie(routed(3, positions=40).first, 40, floors)


def test_every_router_has_to_be_at_a_tie_and_one_has_to_be_there() -> None:
    floors = replace(BARE, routers={"layers.0.mlp": 0.06, ROUTER: 0.0})
    assert only_ties(routed(5, 1), floors)
    assert not only_ties(routed(5, 2), floors)
    assert not only_ties(None, floors)


def with_experts(*changed: int) -> Layers:
    """Two routers over eight positions; the second one's choice differs at `changed`."""
    experts = np.zeros((2, 8), np.uint32)
    experts[1, list(changed)] = 7
    return replace(layers(blocks=2, n=8), expert_blocks=("layers.0.mlp", ROUTER), experts=experts)


def test_the_yardstick_measures_routers_at_the_worst_of_canaries_and_seeds() -> None:
    seeds = [with_experts(2), with_experts(2, 5, 6), with_experts()]
    old = replace(head(n=8), logprob=np.zeros(8, np.float32))
    new = replace(old, digest=old.digest + np.uint64(1), logprob=old.logprob - np.float32(0.01))
    pairs = [Perturbed(canary="a", head=old, other=new, layers=with_experts(), other_layers=layers) for layers in seeds]
    found = floors_of(pairs, 3)
    assert found is not None
    assert found.routers == {"layers.0.mlp": 0.0, ROUTER: 3 / 8}
    assert Floors.from_json(found.to_json()) == found
    older = {name: value for name, value in found.to_json().items() if name != "routers"}
    restored = Floors.from_json(older)
    assert restored is not None
    assert restored.routers == {}
