"""Changes of the computation itself, made in a worker after its model is loaded. No switch of the product does this.

The first four are defects of the native path; the others are what a server may do behind one's back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.nn.functional import linear

from driftpin.trace.head import Declaration
from driftpin.trace.probe import Shape
from runner.engines import batching, bench

LARGEST = 448.0  # of fp8 e4m3


def fp8(states: torch.Tensor) -> torch.Tensor:
    """Rounded to fp8 e4m3 at scale one, saturating, and back."""
    return states.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).to(states.dtype)


def kv_fp8_cache(model: Any) -> None:
    """Keys and values pass through fp8 on their way into the cache; a score, which has none, is spared."""
    from transformers import cache_utils  # noqa: PLC0415 - only the transformers engine has it

    for kind in (cache_utils.DynamicCache, cache_utils.StaticCache):
        _through_fp8(kind)


def _through_fp8(kind: Any) -> None:
    update = kind.update

    def rounded(self: Any, keys: torch.Tensor, values: torch.Tensor, *rest: Any, **more: Any) -> Any:
        return update(self, fp8(keys), fp8(values), *rest, **more)

    kind.update = rounded


def kv_fp8(model: Any) -> None:
    """Keys (before rotation) and values pass through fp8 in every forward, as when a prefix comes from such a cache."""
    for name, module in model.named_modules():
        if name.endswith(("k_proj", "v_proj")):
            module.register_forward_hook(lambda module, inputs, output: fp8(output))


def split_k(model: Any, chunks: int = 4) -> None:
    """The head's sums are made in chunks whose partial sums are rounded to bfloat16."""
    head = model.get_output_embeddings()

    def forward(states: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((), dtype=torch.bfloat16)
        for part, weight in zip(states.chunk(chunks, -1), head.weight.chunk(chunks, -1), strict=True):
            total = total + linear(part, weight).to(torch.bfloat16)
        return total.to(states.dtype)

    head.forward = forward


def split_k_16(model: Any) -> None:
    """The same in sixteen chunks."""
    split_k(model, 16)


def batched(model: Any) -> None:
    """A canary that is declared alone runs beside three others of its length."""
    _in_company(Shape.FILLED)


def padded(model: Any) -> None:
    """A canary that is declared alone runs left-padded beside three longer ones."""
    _in_company(Shape.PADDED)


def _in_company(shape: Shape) -> None:
    def build(ids: Sequence[int], asked: Shape, vocabulary: batching.Vocabulary) -> batching.Batch:
        declared = batching.build(ids, asked, vocabulary).declared
        return replace(batching.build(ids, shape, vocabulary), declared=declared)

    bench.build = build  # type: ignore[assignment, attr-defined]


def static_hidden(model: Any) -> None:
    """A static cache is declared as the dynamic one that the baseline had."""
    declare = bench._declared

    def declared(*given: Any, **more: Any) -> Declaration:
        made = declare(*given, **more)
        return replace(made, cache="DynamicCache" if made.cache.startswith("StaticCache") else made.cache)

    bench._declared = declared


PATCHES: dict[str, Callable[[Any], None]] = {
    made.__name__: made for made in (kv_fp8_cache, kv_fp8, split_k, split_k_16, batched, padded, static_hidden)
}
