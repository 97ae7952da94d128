"""How far hidden states moved, block by block, judged by their sketches. Pure functions of arrays.

With s_j·x the random-sign sums of a state x, the mean over j of (s_j·x − s_j·y)² estimates |x − y|² (Achlioptas 2003),
so the root of the summed squares over positions, divided by that of the baseline's own, is a relative deviation.
Attention sinks are left out: they are huge and would hide every other position.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftpin.comparison.alignment import aligned
from driftpin.comparison.sinks import sketched_sinks
from driftpin.trace.layers import Layers


def deviation(a: Layers, b: Layers, hidden: NDArray[np.bool_] | None = None) -> tuple[tuple[str, float], ...]:
    """(block, relative deviation) in order over the blocks of both; empty where there are no sketches of the same.

    Infinite where a state became non-finite or stood at zero before. `hidden` are the sinks among the baseline's
    sketched positions, [S], where the caller has them.
    """
    pair = aligned(a, b) if len(a.sketch_positions) else "a decode has no sketches"
    if isinstance(pair, str) or not np.array_equal(a.sketch_positions, b.sketch_positions):
        return ()
    keep = ~(sketched_sinks(a) if hidden is None else hidden)
    if not keep.any() or (a.hidden, pair.a.sketch.shape) != (b.hidden, pair.b.sketch.shape):
        return ()
    old, new = pair.a.sketch[:, keep].astype(np.float64), pair.b.sketch[:, keep].astype(np.float64)
    moved = np.sqrt(((new - old) ** 2).sum(axis=(1, 2)))
    size = np.sqrt((old**2).sum(axis=(1, 2)))
    ratio = np.divide(moved, size, out=np.full(len(size), np.inf), where=size > 0)
    ratio = np.where(moved == 0, 0.0, np.nan_to_num(ratio, nan=np.inf))
    return tuple(zip(pair.a.blocks, (float(r) for r in ratio), strict=True))
