"""How far hidden states moved, block by block, judged by their sketches. Pure functions of arrays.

With s_j·x the random-sign sums of a state x, the mean over j of (s_j·x − s_j·y)² estimates |x − y|² (Achlioptas 2003),
so the root of the summed squares over positions, divided by that of the baseline's own, is a relative deviation.
"""

from __future__ import annotations

import numpy as np

from driftpin.trace.layers import Layers

SINK = 0  # the first sequence index: attention sinks there are huge and would hide every other position


def deviation(a: Layers, b: Layers) -> tuple[tuple[str, float], ...]:
    """(block, relative deviation) in order; empty where the two hold no sketches of the same states."""
    same = a.blocks == b.blocks and np.array_equal(a.sketch_positions, b.sketch_positions)
    keep = a.sketch_positions > SINK
    if not same or not keep.any() or a.sketch.shape != b.sketch.shape:
        return ()
    old, new = a.sketch[:, keep].astype(np.float64), b.sketch[:, keep].astype(np.float64)
    moved = np.sqrt(((new - old) ** 2).sum(axis=(1, 2)))
    size = np.sqrt((old**2).sum(axis=(1, 2)))
    ratio = np.divide(moved, size, out=np.full(len(size), np.inf), where=size > 0)
    ratio = np.where(moved == 0, 0.0, ratio)
    return tuple(zip(a.blocks, (float(r) for r in ratio), strict=True))
