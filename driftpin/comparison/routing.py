"""Where two recordings of a mixture of experts chose other experts. Pure functions of arrays.

Only digests of the sorted ids are kept, so this knows that a choice changed, not by how little it was missed.
"""

from __future__ import annotations

import numpy as np

from driftpin.comparison.facts import Rerouted, Routing
from driftpin.trace.layers import Layers


def routing(a: Layers, b: Layers, until: int | None = None) -> Routing | None:
    """None where no expert choice changed or none was recorded on both sides.

    Positions from sequence index `until` on are ignored: they saw other tokens.
    """
    length = min(a.experts.shape[1], b.experts.shape[1])
    if until is not None:
        length = max(0, min(length, until - a.first_position))
    theirs = {_block(module, b): row for row, module in enumerate(b.expert_blocks)}
    found = []
    for row, module in enumerate(a.expert_blocks):
        other = theirs.get(_block(module, a))
        if other is not None and len(differing := np.flatnonzero(a.experts[row, :length] != b.experts[other, :length])):
            position = int(differing[0]) + a.first_position
            found.append(Rerouted(module=module, position=position, count=len(differing)))
    return Routing(positions=length, changed=tuple(found)) if found else None


def _block(module: str, layers: Layers) -> str:
    """The block that a router stands in: inside it libraries rename modules (`block_sparse_moe` became `mlp`)."""
    return next((block for block in layers.blocks if f"{module}.".startswith(f"{block}.")), module)
