"""The rounding yardstick's disturbance: every embedding times (1 + u), |u| at most one ulp of the model's dtype.

It moves the numbers by as much as another order of rounding does, from the first block on. u comes from splitmix64 of
the seed and the element's place, never from a framework's generator, so that every machine disturbs alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from driftpin.trace.digest import splitmix64

DECLARED = "embeddings=(1+u):v1"
SEED_STRIDE = 2**40  # more elements than one forward's embeddings have


@contextmanager
def perturbation(model: Any, seed: int) -> Iterator[None]:
    """While it lasts, the model's input embeddings are disturbed under `seed`."""
    hook = model.get_input_embeddings().register_forward_hook(lambda module, inputs, output: disturbed(output, seed))
    try:
        yield
    finally:
        hook.remove()


def disturbed(states: torch.Tensor, seed: int) -> torch.Tensor:
    """States [..., hidden] times (1 + u), rounded back to their dtype; ulp is the dtype's epsilon."""
    u = torch.from_numpy(units(states.numel(), seed)).to(states.device).reshape(states.shape)
    ulp = torch.finfo(states.dtype).eps
    return (states.double() * (1.0 + ulp * u)).to(states.dtype)


def units(count: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers in [-1, 1), float64 [count], a fixed function of seed and place."""
    index = np.arange(count, dtype=np.uint64) + np.uint64((seed + 1) * SEED_STRIDE)
    return (splitmix64(index) >> np.uint64(11)).astype(np.float64) / 2**52 - 1.0
