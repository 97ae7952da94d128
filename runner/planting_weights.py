"""Changes of weights, each an edit of tensors by name in place. Knows names as transformers writes them; no folder.

Noise comes from the published integer formula of the rounding yardstick, so that every machine plants the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from driftpin.errors import ModelError
from runner.engines.perturbation import units

Tensors = dict[str, torch.Tensor]

BLOCK = re.compile(r"\.layers\.(\d+)\.")
ATTENTION_OUT, MLP_OUT = ("o_proj.weight",), ("down_proj.weight", ".w2.weight")
ROUTERS = ("block_sparse_moe.gate.weight", "mlp.gate.weight")


def damage(tensors: Tensors, options: Any) -> None:
    """One quarter of the rows of `options.tensor` is zero."""
    damaged = named(tensors, options.tensor).clone()
    damaged[: max(1, damaged.shape[0] // 4)] = 0
    tensors[options.tensor] = damaged


def noise(tensors: Tensors, options: Any) -> None:
    """Every weight of every block times (1 + 2^value · u), u in [-1, 1): `value` is -24 … -4."""
    for number, name in enumerate(sorted(tensors)):
        if BLOCK.search(name):
            tensors[name] = disturbed(tensors[name], 2.0**options.value, number)


def disturbed(tensor: torch.Tensor, size: float, seed: int) -> torch.Tensor:
    """The tensor times (1 + size · u), rounded back to its own dtype."""
    u = torch.from_numpy(units(tensor.numel(), seed)).reshape(tensor.shape)
    return (tensor.double() * (1.0 + size * u)).to(tensor.dtype)


def flip(tensors: Tensors, options: Any) -> None:
    """One bit of one element; bit 0 is the mantissa's lowest."""
    tensor = named(tensors, options.tensor).clone()
    width = 8 * tensor.element_size()
    bits = tensor.view({16: torch.int16, 32: torch.int32}[width]).reshape(-1)
    bits[options.place] ^= (1 << options.bit) - ((1 << width) if options.bit == width - 1 else 0)
    tensors[options.tensor] = tensor


def nan(tensors: Tensors, options: Any) -> None:
    """One element is not a number."""
    tensor = named(tensors, options.tensor).clone()
    tensor.reshape(-1)[options.place] = float("nan")
    tensors[options.tensor] = tensor


def identity(tensors: Tensors, options: Any) -> None:
    """A block adds nothing to the residual stream, and stays in the list of blocks."""
    for name in in_block(tensors, options.block, ATTENTION_OUT + MLP_OUT):
        tensors[name] = torch.zeros_like(tensors[name])


def half_mlp(tensors: Tensors, options: Any) -> None:
    """Half of the neurons of one block's MLP, or of each of its experts, say nothing."""
    for name in in_block(tensors, options.block, MLP_OUT):
        halved = tensors[name].clone()
        halved[:, halved.shape[1] // 2 :] = 0
        tensors[name] = halved


def round_weights(tensors: Tensors, options: Any) -> None:
    """Every matrix of every block rounded to nearest in `bits` bits, symmetric per output channel, stored as before."""
    levels = 2 ** (options.bits - 1) - 1
    for name, tensor in list(tensors.items()):
        if BLOCK.search(name) and tensor.ndim == 2 and not name.endswith(ROUTERS):
            wide = tensor.double()
            step = wide.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny) / levels
            tensors[name] = ((wide / step).round() * step).to(tensor.dtype)


def router(tensors: Tensors, options: Any) -> None:
    """One block's expert router, every weight times (1 + 2^value · u)."""
    for name in in_block(tensors, options.block, ROUTERS):
        tensors[name] = disturbed(tensors[name], 2.0**options.value, 0)


def experts_swapped(tensors: Tensors, options: Any) -> None:
    """One block's router takes the first expert for the second, and the other way round."""
    for name in in_block(tensors, options.block, ROUTERS):
        rows = tensors[name].clone()
        rows[[0, 1]] = tensors[name][[1, 0]]
        tensors[name] = rows


def named(tensors: Tensors, name: str) -> torch.Tensor:
    """One tensor; raises `ModelError`."""
    if name not in tensors:
        raise ModelError(f"The model has no tensor {name!r}.", remedy="Name one of the model's own.")
    return tensors[name]


def in_block(tensors: Tensors, block: int, endings: tuple[str, ...]) -> Iterator[str]:
    """Names in one block with one of the endings; raises `ModelError` where there is none."""
    found = [n for n in sorted(tensors) if (m := BLOCK.search(n)) and int(m[1]) == block and n.endswith(endings)]
    if not found:
        raise ModelError(f"Block {block} has no tensor that ends with {' or '.join(endings)}.")
    yield from found
