"""Attention sinks: positions whose hidden states are so large that they would hide every other one. Pure.

Found in the baseline alone, so that a candidate cannot hide itself by moving them. Models put massive activations on
the first token and on some delimiters (Sun et al. 2024, "Massive Activations in Large Language Models").
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftpin.trace.layers import LOG_STEPS, Layers

TIMES = 10.0  # a state this many times as large as its block's median over positions is a sink
STEPS = math.log2(TIMES) * LOG_STEPS  # the same in the recording's quantised logarithms


def sinks(layers: Layers) -> NDArray[np.bool_]:
    """Which recorded positions are sinks, [P]: the sequence's first one, and those that are huge in some block.

    Sizes are RMS as recorded, whose codes are logarithms: non-finite is the largest code, zero the smallest.
    """
    codes = layers.rms
    found = np.zeros(codes.shape[1], dtype=bool)
    if codes.size:
        middle = np.partition(codes, codes.shape[1] // 2, axis=1)[:, codes.shape[1] // 2]  # [L]
        found |= (codes > middle[:, None] + STEPS).any(axis=0)
    if layers.first_position == 0:
        found[:1] = True
    return found


def sketched_sinks(layers: Layers) -> NDArray[np.bool_]:
    """The same for the sketched positions, [S]."""
    if not len(layers.sketch_positions):
        return np.zeros(0, dtype=bool)
    return sinks(layers)[layers.sketch_positions - layers.first_position]
