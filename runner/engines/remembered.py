"""What a model remembers of the sequences it has seen, put back before each execution. Knows modules, no canary.

Rotary embeddings whose frequencies follow the length (`rope_type` dynamic, longrope) keep those of the longest sequence
so far, so a canary's bits would depend on which ran before it (measured on a tiny Llama).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

LENGTH = "max_seq_len_cached"  # ends the name of what grows with the longest sequence
PARTS = (LENGTH, "inv_freq", "attention_scaling")  # ends of the names of what follows it


@dataclass(frozen=True, eq=False)
class Remembered:
    """Lengths and frequencies as they were right after loading."""

    kept: tuple[tuple[nn.Module, str, Any], ...]

    @classmethod
    def of(cls, model: nn.Module) -> Remembered:
        """Of every module that remembers a length; most models have none, or one."""
        return cls(tuple(entry for module in model.modules() for entry in _kept(module)))

    def forget(self) -> None:
        """Put everything back, each time a copy: the library may write into it."""
        for module, name, value in self.kept:
            setattr(module, name, _copy(value))


NOTHING = Remembered(())


def _kept(module: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    names = {*vars(module), *module._buffers}
    if any(name.endswith(LENGTH) for name in names):
        yield from ((module, n, _copy(getattr(module, n))) for n in sorted(names) if n.endswith(PARTS))


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
