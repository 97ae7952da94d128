"""The attention back end: pinned by (recipe, arm), and proven by a trial call. Knows shapes, nothing of models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from driftpin.errors import CannotMeasureError, ConfigError
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm, Probe
from runner.determinism.refusals import cannot_run

BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
SDPA = "sdpa"


def backend(recipe: Recipe, arm: Arm, probe: Probe) -> str:
    """Name of the back end that acts: "eager" where SDPA is not used, "math" in the reference arm, else the recipe's.

    `probe` does not matter yet; it is part of the question because a back end may be right for only one of them.
    """
    del probe
    if recipe.attention != SDPA:
        return recipe.attention
    return "math" if arm is Arm.REFERENCE else recipe.sdpa


@contextmanager
def attention_context(recipe: Recipe, arm: Arm, probe: Probe) -> Iterator[None]:
    """Within it, `scaled_dot_product_attention` uses the pinned back end and no other; raises `ConfigError`."""
    if recipe.attention != SDPA:
        yield
        return
    with sdpa_kernel([_sdp(backend(recipe, arm, probe))]):
        yield


def prove_attention(
    recipe: Recipe,
    arm: Arm,
    dtype: torch.dtype,
    head_dim: int,
    *,
    heads: int = 1,
    kv_heads: int | None = None,
    length: int = 64,
    masked: bool = False,
) -> str:
    """Run the pinned back end once per probe at the model's shapes and return its name.

    Trial inputs are zeros of shape [1, heads, length or 1, head_dim] on the recipe's device. `masked` adds a boolean
    mask, as padded rows and static caches do. Raises `CannotMeasureError` when it does not run here.
    """
    name = backend(recipe, arm, Probe.DECODE)
    if recipe.attention != SDPA:
        return name
    try:
        for probe, queries in ((Probe.SCORE, length), (Probe.DECODE, 1)):
            with attention_context(recipe, arm, probe), torch.inference_mode():
                _trial(recipe.device, dtype, (heads, kv_heads or heads), (queries, length, head_dim), masked=masked)
    except RuntimeError as error:
        raise cannot_run(error) or _refused(name, dtype, error) from error
    return name


class _Attention(nn.Module):
    """What transformers' call looks at in an attention module."""

    is_causal = True

    def __init__(self, groups: int) -> None:
        super().__init__()
        if groups > 1:
            self.num_key_value_groups = groups


def _trial(
    device: str, dtype: torch.dtype, heads: tuple[int, int], sizes: tuple[int, int, int], *, masked: bool
) -> None:
    """Through transformers' own call: whether it repeats the key heads or leaves that to the kernel is its business."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: PLC0415 - start-up time

    queries, length, head_dim = sizes
    query = torch.zeros(1, heads[0], queries, head_dim, dtype=dtype, device=device)
    key = torch.zeros(1, heads[1], length, head_dim, dtype=dtype, device=device)
    mask = torch.ones(1, 1, queries, length, dtype=torch.bool, device=device) if masked else None
    sdpa_attention_forward(_Attention(heads[0] // heads[1]), query, key, key, mask)
    if query.is_cuda:
        torch.cuda.synchronize(query.device)


def _sdp(name: str) -> SDPBackend:
    if name not in BACKENDS:
        raise ConfigError(f"{name!r} is not an SDPA back end.", remedy=f"Use one of {', '.join(BACKENDS)}.")
    return BACKENDS[name]


def _refused(name: str, dtype: torch.dtype, error: RuntimeError) -> CannotMeasureError:
    return CannotMeasureError(
        f"The SDPA back end {name} cannot run {dtype} here: {str(error).splitlines()[0]}",
        remedy='Pin another back end (sdpa = "math" runs everywhere) or another dtype.',
    )
