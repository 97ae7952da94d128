"""Attention sinks: positions whose hidden states are so large that they would hide every other one. Pure.

Found in the baseline alone, so that a candidate cannot hide itself by moving them. Models put massive activations on
the first token and on some delimiters (Sun et al. 2024, "Massive Activations in Large Language Models").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftpin.trace.layers import Layers, dequantise

TIMES = 10.0  # a state this many times as large as its block's median over positions is a sink


def sinks(layers: Layers) -> NDArray[np.bool_]:
    """Which recorded positions are sinks, [P]: the sequence's first one, and those that are huge in some block."""
    rms = np.nan_to_num(dequantise(layers.rms), nan=np.inf)  # [L, P]
    found = np.zeros(rms.shape[1], dtype=bool)
    if rms.size:
        found |= (rms > TIMES * np.median(rms, axis=1, keepdims=True)).any(axis=0)
    if layers.first_position == 0:
        found[:1] = True
    return found


def sketched_sinks(layers: Layers) -> NDArray[np.bool_]:
    """The same for the sketched positions, [S]."""
    return sinks(layers)[layers.sketch_positions - layers.first_position]
