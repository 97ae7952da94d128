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
    found = []
    for module in a.expert_blocks:
        if module in b.expert_blocks and length:
            old, new = (side.experts[side.expert_blocks.index(module), :length] for side in (a, b))
            if len(differing := np.flatnonzero(old != new)):
                position = int(differing[0]) + a.first_position
                found.append(Rerouted(module=module, position=position, count=len(differing)))
    return Routing(positions=length, changed=tuple(found)) if found else None
