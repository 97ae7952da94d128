"""Tensors by name in safetensors files, read when they are asked for. Knows no model."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import safe_open


class _File(Protocol):
    def keys(self) -> list[str]: ...

    def get_tensor(self, name: str) -> torch.Tensor: ...


class Checkpoint:
    """Open weight files; of a name that is in several of them the last counts, as in an ordinary load."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._open = ExitStack()
        self._file: dict[str, _File] = {}
        for path in files:
            opened: Any = self._open.enter_context(safe_open(path, framework="pt", device="cpu"))
            self._file |= dict.fromkeys(opened.keys(), opened)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._file))

    def read(self, name: str) -> torch.Tensor:
        """One tensor, on the CPU, as it is stored."""
        return self._file[name].get_tensor(name)

    def close(self) -> None:
        """Let go of the files."""
        self._file.clear()
        self._open.close()
