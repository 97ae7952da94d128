"""Digests of a model's numbers as they lie on the device: a file's hash misses a fault in memory.

Every parameter and buffer goes through digest v1 where it lives; only one sum per row comes back. Knows no files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from driftpin.environment.fact import Fact
from runner.recording.digest import FLOATS, combined, row_sums, to_u64

BYTE_ROW = 4096  # bytes per row where a tensor is not made of floats that digest v1 knows


def parameter_facts(model: nn.Module) -> dict[str, Fact]:
    """`parameters.<group>` per block or module, `parameters.total` over all, `parameters.dtypes` as a histogram.

    The histogram counts numbers per dtype, parameters only. Tied parameters count once.
    """
    groups: dict[str, Any] = {}
    total = hashlib.sha256()
    for name, tensor in tensors(model):
        entry = f"{name}|{_dtype(tensor)}|{list(tensor.shape)}|{tensor_sum(tensor):016x}\n".encode()
        groups.setdefault(group_of(name), hashlib.sha256()).update(entry)
        total.update(entry)
    facts = {f"parameters.{name}": digest.hexdigest() for name, digest in groups.items()}
    return facts | {"parameters.total": total.hexdigest(), "parameters.dtypes": dtype_histogram(model)}


def tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """All parameters, then all buffers (rotary frequencies among them), by name in module order."""
    yield from model.named_parameters()
    yield from model.named_buffers()


def group_of(name: str) -> str:
    """`model.layers.3.mlp.up_proj.weight` belongs to `model.layers.3`, `model.norm.weight` to `model.norm`."""
    parts = name.split(".")
    number = next((i for i, part in enumerate(parts) if part.isdecimal()), None)
    return ".".join(parts[:-1] if number is None else parts[: number + 1]) or name


def tensor_sum(tensor: torch.Tensor) -> int:
    """One digest v1 sum over all rows of a tensor, as an unsigned 64-bit integer."""
    plain = tensor.detach()
    if plain.numel() == 0:
        return 0
    known = plain.dtype in FLOATS or (plain.is_floating_point() and plain.element_size() == 1)
    rows = plain.reshape(-1, plain.shape[-1] if plain.dim() else 1) if known else _byte_rows(plain)
    return int(combined(to_u64(row_sums(rows))))


def dtype_histogram(model: nn.Module) -> dict[str, int]:
    """How many parameters' numbers there are of each dtype."""
    counts: Counter[str] = Counter()
    for parameter in model.parameters():
        counts[_dtype(parameter)] += parameter.numel()
    return dict(sorted(counts.items()))


def _byte_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Bytes as float32, which holds each exactly; zeros fill the last row, and the shape is hashed beside the sum."""
    raw = tensor.contiguous().reshape(-1).view(torch.uint8)
    padded = torch.nn.functional.pad(raw, (0, -len(raw) % BYTE_ROW))
    return padded.reshape(-1, BYTE_ROW).to(torch.float32)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
