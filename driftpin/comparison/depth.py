"""Where two layer recordings part, by bits. Pure functions of arrays."""

from __future__ import annotations

import numpy as np

from driftpin.comparison.alignment import Aligned, aligned
from driftpin.comparison.facts import Depth
from driftpin.trace.layers import Layers, dequantise


def depth(a: Layers, b: Layers, until: int | None = None) -> tuple[Depth | None, str | None]:
    """The earliest parting and None, or None and the reason; positions from sequence index `until` on are ignored.

    A decode's prefill comes first in time, so its digest is asked first; after a token divergence the contexts
    differ, so `until` is the last position that still saw the same one, plus one.
    """
    pair = aligned(a, b)
    if isinstance(pair, str):
        return None, pair
    if reason := _unlike(a, b):
        return None, reason
    found = _prefill(pair) or _cells(pair, until)
    if found is not None:
        position, row = found
        ratio = None if position is None else _ratio(pair, row, position)
        return _depth(a, pair, row, None if position is None else position + a.first_position, ratio), None
    return _depth(a, pair, None, None, None), None


def _unlike(a: Layers, b: Layers) -> str | None:
    """Why the two recordings' numbers cannot be held against each other."""
    if (a.dtype, a.hidden) != (b.dtype, b.hidden):
        old, new = (f"{side.dtype} of width {side.hidden}" for side in (a, b))
        return f"the hidden states were {old} before and are {new} now"
    if a.first_position != b.first_position:
        return f"the recordings begin at different positions: {a.first_position} before, {b.first_position} now"
    return None


def _depth(a: Layers, pair: Aligned, row: int | None, position: int | None, ratio: float | None) -> Depth:
    block = None if row is None else pair.a.blocks[row]
    return Depth(
        block=block,
        index=None if block is None else a.blocks.index(block),
        blocks=len(a.blocks),
        position=position,
        ratio_rms=ratio,
        note=pair.note,
    )


def _prefill(pair: Aligned) -> tuple[None, int] | None:
    old, new = pair.a.prefill, pair.b.prefill
    differing = np.flatnonzero(old != new) if len(old) == len(new) else np.zeros(0, dtype=np.intp)
    return (None, int(differing[0])) if len(differing) else None


def _cells(pair: Aligned, until: int | None) -> tuple[int, int] | None:
    """Recorded position and block of the first differing cell.

    By position first: what comes later in a text reaches nothing before it. Not so a number that is not finite: zero
    times NaN is NaN, so masked attention carries it to earlier positions, and only the order of blocks is left.
    """
    a, b = pair.a, pair.b
    length = min(a.cells.shape[1], b.cells.shape[1])
    if until is not None:
        length = max(0, min(length, until - a.first_position))
    differing = a.cells[:, :length] != b.cells[:, :length]  # [L, P]
    if not differing.any():
        return None
    if (differing & (b.nonfinite[:, :length] > 0)).any():
        row, position = (int(at) for at in np.argwhere(differing)[0])
    else:
        position, row = (int(at) for at in np.argwhere(differing.T)[0])
    return position, row


def _ratio(pair: Aligned, row: int, position: int) -> float | None:
    old, new = (float(dequantise(side.rms[row : row + 1, position])[0]) for side in (pair.a, pair.b))
    return new / old if old > 0 and np.isfinite(new) else None
