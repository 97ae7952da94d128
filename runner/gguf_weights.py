"""De-quantised GGUF tensors as one safetensors file, and the proof that the file holds them. Knows no cache folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from driftpin.errors import ModelError
from runner.gguf_llama import GgufLlama

Progress = Callable[[str, int, int], None]


def write_weights(model: GgufLlama, path: Path, dtype: str, progress: Progress) -> None:
    """All tensors rounded to `dtype` (to nearest, ties to even) under their Hugging Face names."""
    total, tensors = len(model.names), {}
    for done, (name, values) in enumerate(model.tensors(), start=1):
        tensors[name] = torch.from_numpy(values.copy()).to(getattr(torch, dtype))
        progress("convert", done, total)
    save_file(tensors, path, metadata={"format": "pt"})


def check_weights(model: GgufLlama, path: Path, dtype: str, progress: Progress) -> None:
    """Read back each tensor and compare it bit by bit with its de-quantised values in `dtype`; raises `ModelError`."""
    with safe_open(path, framework="pt") as stored:
        if sorted(stored.keys()) != model.names:
            raise ModelError(f"{path} does not hold the tensors of its source.")
        for done, (name, values) in enumerate(model.tensors(), start=1):
            wanted = torch.from_numpy(values.copy()).to(getattr(torch, dtype))
            if not _same_bits(stored.get_tensor(name), wanted):
                raise ModelError(f"The tensor {name} was not written as it was read.", remedy="Check disk and memory.")
            progress("check", done, len(model.names))


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
