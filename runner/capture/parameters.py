"""Digests of a model's numbers as they lie on the device: a file's hash misses a fault in memory.

Every parameter and buffer goes through digest v1 where it lives; only one sum per row comes back. Knows no files, but
tells what came from them from what the library computed while loading: the latter changes with the library.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from driftpin.canonical import sha256_hex
from driftpin.environment.fact import Fact, Unknown
from runner.recording.digest import FLOATS, combined, row_sums, to_u64

NOT_LOADED = "the model runs block by block, and these weights are not on the device all the time"
BYTE_ROW = 4096  # bytes per row where a tensor is not made of floats that digest v1 knows


def parameter_facts(model: nn.Module) -> dict[str, Fact]:
    """`parameters.<group>` per block or module, `parameters.total` over all, `parameters.dtypes` as a histogram.

    Parameters, and buffers that a file may hold. The histogram counts numbers per dtype, parameters only. Tied
    parameters count once. Groups that are not loaded, as in a reference that runs block by block, are unknown.
    """
    elsewhere = {group_of(name) for name, tensor in tensors(model) if tensor.is_meta}
    groups, total = digests((name, tensor) for name, tensor in tensors(model) if group_of(name) not in elsewhere)
    facts: dict[str, Fact] = {f"parameters.{name}": digest for name, digest in groups.items()}
    facts |= {f"parameters.{name}": Unknown(NOT_LOADED) for name in sorted(elsewhere)}
    whole = Unknown(NOT_LOADED) if elsewhere else total
    return facts | {"parameters.total": whole, "parameters.dtypes": dtype_histogram(model)}


def computed_facts(model: nn.Module) -> dict[str, Fact]:
    """`computed.<group>` per module with buffers that stand in no file, rotary frequencies for example.

    Facts of the stack and not of the model: transformers 4.57 and 5.24 keep different ones for one config.json. With
    them `parameters.layout`, over the names and shapes of all parameters: where it differs, their bits say nothing.
    """
    groups, _ = digests(computed(model))
    layout = "".join(f"{name}|{list(tensor.shape)}\n" for name, tensor in tensors(model))
    facts: dict[str, Fact] = {f"computed.{name}": digest for name, digest in groups.items()}
    return facts | {"parameters.layout": sha256_hex(layout.encode())}


def digests(named: Iterable[tuple[str, torch.Tensor]]) -> tuple[dict[str, str], str]:
    """sha256 per group over name, dtype, shape and digest v1 of its tensors; and one over all of them."""
    groups: dict[str, Any] = {}
    total = hashlib.sha256()
    for name, tensor in named:
        entry = f"{name}|{_dtype(tensor)}|{list(tensor.shape)}|{tensor_sum(tensor):016x}\n".encode()
        groups.setdefault(group_of(name), hashlib.sha256()).update(entry)
        total.update(entry)
    return {name: digest.hexdigest() for name, digest in groups.items()}, total.hexdigest()


def tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """All parameters, then the buffers that a file may hold, by name in module order."""
    made = _not_from_files(model)
    yield from model.named_parameters()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name not in made)


def computed(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The buffers that no file holds."""
    made = _not_from_files(model)
    return ((name, buffer) for name, buffer in model.named_buffers() if name in made)


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


def _not_from_files(model: nn.Module) -> set[str]:
    """Names of non-persistent buffers."""
    # torch has no public word for it, and state_dict() would lack buffers that a class hides for other reasons
    modules = model.named_modules()
    return {f"{path}.{name}" if path else name for path, m in modules for name in m._non_persistent_buffers_set}


def _byte_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Bytes as float32, which holds each exactly; zeros fill the last row, and the shape is hashed beside the sum."""
    raw = tensor.contiguous().reshape(-1).view(torch.uint8)
    padded = torch.nn.functional.pad(raw, (0, -len(raw) % BYTE_ROW))
    return padded.reshape(-1, BYTE_ROW).to(torch.float32)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
