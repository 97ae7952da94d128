"""What a reference arm's context says about how it ran. Knows the names; `runner.engines.reference` writes them."""

from __future__ import annotations

from driftpin.environment.environment import Environment
from driftpin.environment.fact import Unknown

WAY = "reference.way"  # "whole" or "block_by_block"
WEIGHTS = "reference.weights"  # "as stored", or "de-quantised from <method>"
AS_STORED = "as stored"


def reference_label(environment: Environment) -> str | None:
    """What a reader must know beside a reference's numbers: "de-quantised from fp8"; None where that is nothing."""
    weights = environment.context.get(WEIGHTS, AS_STORED)
    return None if isinstance(weights, Unknown) or weights == AS_STORED else str(weights)
