"""The key-value cache of a decode: the library's own, or a static one of one length per suite. Knows no canary."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn
from transformers import StaticCache

from runner.engines.batching import PADDING

ROUND = 64  # static lengths are multiples of it


def static_length(longest: int) -> int:
    """One length for a suite whose longest prompt and output together have that many tokens, padded shapes included."""
    return -(-(longest + PADDING) // ROUND) * ROUND


def cache_arguments(model: nn.Module, length: int | None, rows: int) -> dict[str, Any]:
    """Arguments of `generate`: nothing for None, else a new static cache of that length.

    A new cache per execution, because `generate` remembers the longest it ever made and then makes every later one as
    long, which changes the bits of a canary that runs after a longer one.
    """
    if length is None:
        return {}
    forward: Any = model.forward
    keyword = "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"
    return {keyword: _static_cache(model, length, rows)}


def _static_cache(model: Any, length: int, rows: int) -> StaticCache:
    """transformers 4 before 4.56 wanted batch size, device and dtype at once; later ones find out by themselves."""
    config = model.config.get_text_config(decoder=True)
    asked = inspect.signature(StaticCache.__init__).parameters
    early = {"max_batch_size": rows, "batch_size": rows, "device": model.device, "dtype": model.dtype}
    return StaticCache(config=config, max_cache_len=length, **{k: v for k, v in early.items() if k in asked})
