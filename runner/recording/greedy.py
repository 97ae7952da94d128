"""Proof that a decode was greedy: was each emitted token an arg-max of the processed logits? Changes nothing.

It stands last among the processors of the model's ordinary `generate` and sees one row, the row of interest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LogitsProcessor

from driftpin.trace.probe import Greedy


class GreedyWitness(LogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Keeps two numbers per step: the best processed score of row 0, and the score of the token that was emitted.

    The second is read one step late, when the emitted token is known; `verdicts` reads the last one.
    """

    def __init__(self, *, forcing: bool, seen: Callable[[torch.Tensor], None]) -> None:
        self._seen = seen  # told the ids so far, int64 [batch, t], once per step
        self._forcing = forcing  # a processor may force tokens: then count what it left possible
        self._pending: torch.Tensor | None = None  # [vocab] of the last step
        self._best: list[torch.Tensor] = []
        self._chosen: list[torch.Tensor] = []
        self._possible: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Look at scores [batch, vocab] and hand them on as they are."""
        self._seen(input_ids)
        self._settle(input_ids[0, -1:])
        row = scores[0]
        self._pending = row
        self._best.append(row.amax(0, keepdim=True))
        if self._forcing:
            self._possible.append((row > -torch.inf).sum(0, keepdim=True))
        return scores

    def verdicts(self, output_ids: torch.Tensor) -> NDArray[np.uint8]:
        """A `Greedy` per emitted token of row 0, int64 [N]; call once, after the generation."""
        count = len(output_ids)
        if self._pending is not None and len(self._chosen) < count:
            self._settle(output_ids[-1:])
        best, chosen = torch.cat(self._best[:count]), torch.cat(self._chosen[:count])
        proven = (best == chosen) | (best.isnan() & chosen.isnan())  # arg-max takes a NaN where there is one
        found = torch.where(proven, int(Greedy.PROVEN), int(Greedy.VIOLATED))
        if self._forcing:
            found = torch.where(torch.cat(self._possible[:count]) == 1, int(Greedy.FORCED), found)
        return found.cpu().numpy().astype(np.uint8)

    def _settle(self, token: torch.Tensor) -> None:
        if self._pending is not None:
            self._chosen.append(self._pending.gather(0, token.to(self._pending.device)))
