"""Two layer recordings brought to the same blocks, by module path. Pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from driftpin.trace.layers import Layers


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """Both sides over the blocks that they share, in the baseline's order; `note` says how the two models differ."""

    a: Layers
    b: Layers
    note: str | None = None


def aligned(a: Layers, b: Layers) -> Aligned | str:
    """The shared blocks, or why there are none.

    Where one side has fewer blocks, those of equal path stand for each other: a removed block then shows at its own
    path, where another block's output now lies. Where no path is shared, as after a library renamed its modules, the
    order of equally many blocks counts.
    """
    if a.blocks == b.blocks:
        return Aligned(a=a, b=b)
    shared = [path for path in a.blocks if path in set(b.blocks)]
    if shared:
        note = f"the two models have different blocks: {_numbers(a, b)}"
        return Aligned(a=_only(a, shared), b=_only(b, shared), note=note)
    if len(a.blocks) == len(b.blocks) > 0:
        note = f"the blocks are named otherwise now: {a.blocks[0]} was, {b.blocks[0]} is the first"
        return Aligned(a=a, b=replace(b, blocks=a.blocks), note=note)
    return f"the two models have different blocks: {_counted(a.blocks)} before, {_counted(b.blocks)} now"


def _numbers(a: Layers, b: Layers) -> str:
    if len(a.blocks) != len(b.blocks):
        return f"{len(a.blocks)} before, {len(b.blocks)} now"
    gone, come = (next(p for p in x.blocks if p not in set(y.blocks)) for x, y in ((a, b), (b, a)))
    return f"{gone} is gone, {come} is new"


def _only(layers: Layers, paths: Sequence[str]) -> Layers:
    rows = np.array([layers.blocks.index(path) for path in paths])
    kept = {name: getattr(layers, name)[rows] for name in ("cells", "rms", "absmax", "nonfinite", "sketch")}
    prefill = layers.prefill[rows] if len(layers.prefill) else layers.prefill
    return replace(layers, blocks=tuple(paths), prefill=prefill, **kept)


def _counted(blocks: Sequence[str]) -> str:
    return f"{len(blocks)}, {blocks[0]} first," if blocks else "none"
