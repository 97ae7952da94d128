"""Changes of the computation itself, made in a worker after its model is loaded. No switch of the product does this.

Caches, projections and split sums are defects of the native path; company and a hidden cache are what a server may do
behind one's back.
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
PAGE = (4, 8)  # positions
VALUES = {  # by name: the factor, and the layer as a share of all
    "values_0_last": (0.0, 1.0),
    "values_05_one": (0.5, 0.5),
    "values_08_one": (0.8, 0.5),
    "values_09_all": (0.9, None),
    "values_08_all": (0.8, None),
}


def fp8(states: torch.Tensor) -> torch.Tensor:
    """Rounded to fp8 e4m3 at scale one, saturating, and back."""
    return states.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).to(states.dtype)


def kv_fp8_cache(model: Any) -> None:
    """Keys and values pass through fp8 on their way into the cache; a score, which has none, is spared."""
    _on_the_way_into_the_cache(lambda keys, values, layer: (fp8(keys), fp8(values)))


def values_scaled(model: Any, factor: float, layer: int | None = None) -> None:
    """A wrong scale of the cached values of one layer, or of all of them; a score has no cache."""

    def scaled(keys: torch.Tensor, values: torch.Tensor, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return keys, values * factor if layer in (None, index) else values

    _on_the_way_into_the_cache(scaled)


def page_lost(model: Any) -> None:
    """Values of four positions of the prompt are zero in the cache of every layer: a page that was never written."""

    def holed(keys: torch.Tensor, values: torch.Tensor, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if values.shape[-2] <= max(PAGE):  # a step, or a prompt that ends before the page
            return keys, values
        values = values.clone()
        values[..., PAGE[0] : PAGE[1], :] = 0
        return keys, values

    _on_the_way_into_the_cache(holed)


def _on_the_way_into_the_cache(change: Callable[[torch.Tensor, torch.Tensor, int], Any]) -> None:
    from transformers import cache_utils  # noqa: PLC0415 - only the transformers engine has it

    for kind in (cache_utils.DynamicCache, cache_utils.StaticCache):
        _patched(kind, change)


def _patched(kind: Any, change: Callable[[torch.Tensor, torch.Tensor, int], Any]) -> None:
    update = kind.update

    def changed(self: Any, keys: torch.Tensor, values: torch.Tensor, layer: int, *rest: Any, **more: Any) -> Any:
        return update(self, *change(keys, values, layer), layer, *rest, **more)

    kind.update = changed


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


def _values(name: str) -> Callable[[Any], None]:
    factor, share = VALUES[name]

    def patch(model: Any) -> None:
        count = model.config.get_text_config().num_hidden_layers
        values_scaled(model, factor, None if share is None else min(int(share * count), count - 1))

    return patch


_NAMED = (kv_fp8_cache, page_lost, kv_fp8, split_k, split_k_16, batched, padded, static_hidden)
PATCHES: dict[str, Callable[[Any], None]] = {
    **{made.__name__: made for made in _NAMED},
    **{name: _values(name) for name in VALUES},
}
