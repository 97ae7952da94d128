"""Where two layer recordings part, by bits. Pure functions of arrays."""

from __future__ import annotations

import numpy as np

from driftpin.comparison.facts import Depth
from driftpin.trace.layers import Layers, dequantise


def depth(a: Layers, b: Layers, until: int | None = None) -> tuple[Depth | None, str | None]:
    """The earliest parting and None, or None and the reason; positions from sequence index `until` on are ignored.

    A decode's prefill comes first in time, so its digest is asked first; after a token divergence the contexts
    differ, so `until` is the last position that still saw the same one, plus one.
    """
    if a.blocks != b.blocks:
        return None, "the two models have different blocks"
    if (a.dtype, a.hidden, a.first_position) != (b.dtype, b.hidden, b.first_position):
        return None, "the hidden states have different types, widths or positions"
    return _prefill(a, b) or _cells(a, b, until) or Depth(
        block=None, index=None, blocks=len(a.blocks), position=None, ratio_rms=None
    ), None


def _prefill(a: Layers, b: Layers) -> Depth | None:
    if len(a.prefill) != len(b.prefill):
        return None
    differing = np.flatnonzero(a.prefill != b.prefill)
    if not len(differing):
        return None
    index = int(differing[0])
    return Depth(block=a.blocks[index], index=index, blocks=len(a.blocks), position=None, ratio_rms=None)


def _cells(a: Layers, b: Layers, until: int | None) -> Depth | None:
    length = min(a.cells.shape[1], b.cells.shape[1])
    if until is not None:
        length = max(0, min(length, until - a.first_position))
    differing = np.argwhere((a.cells[:, :length] != b.cells[:, :length]).T)  # rows of (position, block)
    if not len(differing):
        return None
    position, index = (int(n) for n in differing[0])
    return Depth(
        block=a.blocks[index],
        index=index,
        blocks=len(a.blocks),
        position=position + a.first_position,
        ratio_rms=_ratio(a, b, index, position),
    )


def _ratio(a: Layers, b: Layers, index: int, position: int) -> float | None:
    old = float(dequantise(a.rms[index : index + 1, position])[0])
    new = float(dequantise(b.rms[index : index + 1, position])[0])
    return new / old if old > 0 and np.isfinite(new) else None
