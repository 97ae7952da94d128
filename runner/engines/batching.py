"""The declared batch shapes: one prompt alone, beside filler rows of its length, or left-padded beside longer ones.

Filler ids come from splitmix64 over the ordinary vocabulary, never from a framework's generator, whose numbers differ
between machines. Knows ids; nothing of models.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from driftpin.trace.digest import splitmix64
from driftpin.trace.probe import Shape

FILLER = "v1"  # name of the formula below
FILLER_ROWS = 3
PADDING = 16  # tokens by which the filler rows of `Shape.PADDED` are longer


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Ids that filler rows may use, and the id that pads."""

    ordinary: tuple[int, ...]
    pad: int

    @classmethod
    def of(cls, size: int, special: Collection[int], pad: int) -> Vocabulary:
        """All ids below `size` that are not special: a stray image or end token would change what the row means."""
        left_out = set(special)
        return cls(ordinary=tuple(i for i in range(size) if i not in left_out) or (0,), pad=pad)

    def filler(self, row: int, length: int) -> list[int]:
        """Filler v1: id_i = ordinary[splitmix64(row * 2^32 + i) mod count]."""
        index = np.arange(length, dtype=np.uint64) + np.uint64(row * 2**32)
        return [self.ordinary[int(n)] for n in splitmix64(index) % np.uint64(len(self.ordinary))]


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Token ids and attention mask, int64 [rows, width]; the row of interest is row 0 and ends at the right edge."""

    ids: torch.Tensor
    mask: torch.Tensor
    declared: str

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.ids)

    @property
    def width(self) -> int:
        """Tokens per row, padding included."""
        return self.ids.shape[1]

    @property
    def positions(self) -> torch.Tensor:
        """Position ids as `generate` makes them: counted over real tokens, 1 on padding; int64 [rows, width]."""
        return (self.mask.cumsum(-1) - 1).masked_fill(self.mask == 0, 1)


def build(ids: Sequence[int], shape: Shape, vocabulary: Vocabulary) -> Batch:
    """The batch on the CPU, in which `ids` run in that shape."""
    if shape is Shape.ALONE:
        return _batch([list(ids)], 0, "rows=1")
    padding = PADDING if shape is Shape.PADDED else 0
    rows = [vocabulary.filler(row, len(ids) + padding) for row in range(1, FILLER_ROWS + 1)]
    declared = f"rows={FILLER_ROWS + 1},filler={FILLER}" + (f",padding={padding}" if padding else "")
    return _batch([[vocabulary.pad] * padding + list(ids), *rows], padding, declared)


def _batch(rows: list[list[int]], padding: int, declared: str) -> Batch:
    ids = torch.tensor(rows, dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[0, :padding] = 0
    return Batch(ids=ids, mask=mask, declared=declared)
