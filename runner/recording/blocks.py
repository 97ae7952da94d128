"""Where the text decoder's blocks are, and which of them choose experts. Knows module trees, not what flows through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """The decoder's blocks by module path, in order; none, with the reason, where they are not recognised."""

    modules: dict[str, nn.Module]
    absent: str | None = None


Pick = Callable[[tuple[Any, ...], Any], torch.Tensor | None]  # (inputs, output) to expert ids [tokens, k]


@dataclass(frozen=True, kw_only=True)
class Router:
    """One mixture-of-experts block: the module to listen to, and how to read the chosen experts from a call of it."""

    block: str  # module path
    listen: nn.Module
    pick: Pick


def find_blocks(model: nn.Module) -> Blocks:
    """The longest module list whose items are of a class that transformers declares unsplittable; the first of equals.

    Encoders of other modalities are passed over where the model says which part is its text decoder.
    """
    names = _unsplittable(model)
    lists = [(path, items) for path, items in _lists(model) if all(type(item).__name__ in names for item in items)]
    if not lists:
        declared = ", ".join(sorted(names)) or "no unsplittable class"
        return Blocks(
            modules={}, absent=f"{type(model).__name__} declares {declared}, and no module list is made of it"
        )
    text = _text_decoder_paths(model)
    mine = [(path, items) for path, items in lists if any(path.startswith(prefix) for prefix in text)] or lists
    path, items = max(mine, key=lambda found: len(found[1]))
    return Blocks(modules={f"{path}.{index}": item for index, item in enumerate(items)})


def find_routers(blocks: Blocks) -> tuple[Router, ...]:
    """Routers of the blocks that choose among experts; those of an unknown layout are left out."""
    found = (_router(path, block) for path, block in blocks.modules.items())
    return tuple(router for router in found if router is not None)


def _unsplittable(model: nn.Module) -> set[str]:
    declared = (getattr(module, "_no_split_modules", None) or () for module in model.modules())
    return {name for names in declared for name in names}


def _lists(model: nn.Module) -> Iterator[tuple[str, nn.ModuleList]]:
    return ((path, m) for path, m in model.named_modules() if isinstance(m, nn.ModuleList) and len(m))


def _text_decoder_paths(model: nn.Module) -> tuple[str, ...]:
    """Paths of the submodules that `get_decoder` names; empty paths (the model itself) tell nothing."""
    getter = getattr(model, "get_decoder", None)
    decoder = getter() if callable(getter) else None
    return tuple(f"{path}." for path, module in model.named_modules() if module is decoder and path)


def _router(path: str, block: nn.Module) -> Router | None:
    for name, module in block.named_modules():
        where = f"{path}.{name}" if name else path
        found = _of_chooser(where, getattr(module, "router", None)) or _of_experts(where, module)
        if found is not None:
            return found
    return None


def _of_chooser(where: str, chooser: object) -> Router | None:
    """A module of its own that puts out the chosen ids, or the logits that it chose by."""
    top_k = getattr(chooser, "top_k", None)
    if not isinstance(chooser, nn.Module) or not isinstance(top_k, int):
        return None
    return Router(block=where, listen=chooser, pick=_chosen(top_k, getattr(chooser, "num_experts", None)))


def _of_experts(where: str, module: nn.Module) -> Router | None:
    """In transformers 5 `experts` is called with the chosen ids; in 4 the block or its gate tells them."""
    experts = getattr(module, "experts", None)
    if not isinstance(experts, nn.Module):
        return None
    if not isinstance(experts, nn.ModuleList):
        return Router(block=where, listen=experts, pick=_second_input)
    top_k = getattr(module, "top_k", None)
    if isinstance(top_k, int):
        return Router(block=where, listen=module, pick=_top_of_logits(top_k, len(experts)))
    return _of_chooser(where, getattr(module, "gate", None))


def _chosen(top_k: int, experts: int | None) -> Pick:
    """Ids [tokens, k] among the outputs, else the top of logits [tokens, experts]."""

    def pick(inputs: tuple[Any, ...], output: Any) -> torch.Tensor | None:
        parts = [p for p in (output if isinstance(output, tuple) else (output,)) if isinstance(p, torch.Tensor)]
        flat = [part.reshape(-1, part.shape[-1]) for part in parts if part.ndim > 1]
        ids = [part for part in flat if _are_ids(part) and part.shape[-1] == top_k]
        logits = [part for part in flat if part.is_floating_point() and part.shape[-1] == experts]
        if ids:
            return ids[0]
        return logits[-1].topk(top_k, dim=-1).indices if logits else None

    return pick


def _second_input(inputs: tuple[Any, ...], output: Any) -> torch.Tensor | None:
    ids = inputs[1] if len(inputs) > 1 else None
    return ids if isinstance(ids, torch.Tensor) and ids.ndim == 2 and _are_ids(ids) else None


def _are_ids(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.dtype != torch.bool


def _top_of_logits(top_k: int, experts: int) -> Pick:
    """Softmax and sigmoid keep the order, so the top of the logits are the experts that were called."""

    def pick(inputs: tuple[Any, ...], output: Any) -> torch.Tensor | None:
        logits = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if not isinstance(logits, torch.Tensor) or logits.shape[-1] != experts:
            return None
        return logits.reshape(-1, experts).topk(top_k, dim=-1).indices

    return pick
