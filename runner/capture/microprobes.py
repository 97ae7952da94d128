"""Behaviour: what fixed operators compute on this device, at the model's own shapes, hashed with digest v1.

Inputs come from a formula, never from a framework's generator: number i of stream s is
((splitmix64(s * 2^32 + (i mod 65521)) >> 40) - 2^23) / 2^23 * scale, exact in float32, then rounded to the dtype on
the CPU. Agreement means "no difference seen at these shapes", never "computes alike".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from driftpin.environment.fact import Fact, Unknown
from driftpin.trace.digest import SCHEME, leaf, merkle_root, splitmix64
from runner.recording.digest import row_sums, to_u64

PERIOD = 65521  # a prime, so that no row repeats its neighbour
VOCABULARY = 8192  # rows of the output projection that are probed
CONTEXT = 64  # keys that a single query attends to
REDUCTION = 2**18  # numbers in one long sum
EPSILON = 1e-5  # of the rms-norm
CPU = torch.device("cpu")

Sizes = tuple[int, int]  # batch, positions


@dataclass(frozen=True, kw_only=True)
class MicroprobeShapes:
    """The model's own widths, and the numbers of rows at which it will run."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    prompt: int = 64  # positions of a prefill
    batch: int = 4  # rows of a batched step

    @classmethod
    def of(cls, config: Any, *, prompt: int = 64, batch: int = 4) -> MicroprobeShapes:
        """From a transformers configuration; raises AttributeError where it has no such widths."""
        text = config.get_text_config(decoder=True)
        heads = text.num_attention_heads
        return cls(
            hidden=text.hidden_size,
            heads=heads,
            kv_heads=getattr(text, "num_key_value_heads", None) or heads,
            head_dim=getattr(text, "head_dim", None) or text.hidden_size // heads,
            intermediate=_first(getattr(text, "intermediate_size", None)) or 4 * text.hidden_size,
            vocabulary=min(text.vocab_size, VOCABULARY),
            prompt=prompt,
            batch=batch,
        )

    @property
    def cases(self) -> dict[str, Sizes]:
        """One position alone, a whole prompt, and one position of each row in a batch."""
        return {"m1": (1, 1), f"m{self.prompt}": (1, self.prompt), f"b{self.batch}": (self.batch, 1)}


def _first(width: Any) -> Any:
    """Some configurations (Gemma 3n) give one width per block."""
    return width[0] if isinstance(width, list) else width


def behaviour_facts(
    shapes: MicroprobeShapes,
    dtype: torch.dtype,
    device: torch.device,
    attention: Callable[[], AbstractContextManager[None]],
) -> dict[str, Fact]:
    """`<operator>.<case>`: a digest; unknown where two runs disagree or the operator does not run here.

    `attention` pins the back end of scaled dot-product attention.
    """
    bench = _Bench(shapes=shapes, dtype=dtype, device=device, attention=attention)
    facts: dict[str, Fact] = {}
    with torch.inference_mode():
        for operator, compute in OPERATORS.items():
            bench.made.clear()
            for case, sizes in shapes.cases.items():
                facts[f"{operator}.{case}"] = twice(partial(compute, bench, sizes))
        facts["reduction.long"] = twice(partial(_reduction, bench))
    return facts


def twice(compute: Callable[[], torch.Tensor]) -> Fact:
    """The digest of what `compute` gives, if two runs agree."""
    try:
        first, second = (tensor_digest(compute()) for _ in range(2))
    except RuntimeError as error:
        return Unknown(f"the operator does not run here: {str(error).splitlines()[0]}")
    return first if first == second else Unknown("two runs in a row gave different bits")


def tensor_digest(tensor: torch.Tensor) -> str:
    """Merkle root (hex) over the digest v1 sums of a tensor's rows [..., n]."""
    dtype, length = str(tensor.dtype).removeprefix("torch."), tensor.shape[-1]
    return f"{SCHEME}:" + merkle_root([leaf(dtype, length, int(s)) for s in to_u64(row_sums(tensor)).reshape(-1)])


def numbers(
    stream: int, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float32, device: torch.device = CPU
) -> torch.Tensor:
    """Numbers in [-scale, scale) by the formula above, shape as given; one period is rounded, then repeated."""
    count = math.prod(shape)
    period = (_period(stream) * scale).to(dtype).to(device)
    return period.repeat(-(-count // PERIOD))[:count].reshape(shape)


@lru_cache(maxsize=16)
def _period(stream: int) -> torch.Tensor:
    mixed = splitmix64(np.arange(PERIOD, dtype=np.uint64) + np.uint64(stream << 32)) >> np.uint64(40)
    return torch.from_numpy(((mixed.astype(np.float64) - 2.0**23) / 2.0**23).astype(np.float32))


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """Where and in which format the operators run, and the current operator's inputs, which none writes to."""

    shapes: MicroprobeShapes
    dtype: torch.dtype
    device: torch.device
    attention: Callable[[], AbstractContextManager[None]]
    made: dict[tuple[int, ...], torch.Tensor] = field(default_factory=dict)

    def take(self, stream: int, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Numbers in the bench's format on its device."""
        if (stream, *shape) not in self.made:
            self.made[stream, *shape] = numbers(stream, *shape, scale=scale, dtype=self.dtype, device=self.device)
        return self.made[stream, *shape]

    def rows(self, sizes: Sizes, width: int) -> torch.Tensor:
        """Input rows [batch, positions, width]."""
        return self.take(1, *sizes, width)


def _linear(widths: Callable[[MicroprobeShapes], Sizes], bench: _Bench, sizes: Sizes) -> torch.Tensor:
    wide_in, wide_out = widths(bench.shapes)
    weight = bench.take(2, wide_out, wide_in, scale=2.0**-4)
    return functional.linear(bench.rows(sizes, wide_in), weight)  # (B, T, out)


def _attention(bench: _Bench, sizes: Sizes) -> torch.Tensor:
    (batch, queries), s = sizes, bench.shapes
    keys = max(queries, CONTEXT)
    query = bench.take(3, batch, s.heads, queries, s.head_dim, scale=4.0)  # (B, H, T, D)
    key, value = (bench.take(n, batch, s.kv_heads, keys, s.head_dim) for n in (4, 5))
    key, value = (t.repeat_interleave(s.heads // s.kv_heads, dim=1) for t in (key, value))  # as transformers does
    with bench.attention():
        return functional.scaled_dot_product_attention(query, key, value, is_causal=queries == keys)


def _rms_norm(bench: _Bench, sizes: Sizes) -> torch.Tensor:
    wide = bench.rows(sizes, bench.shapes.hidden).to(torch.float32)
    scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
    return bench.take(6, bench.shapes.hidden) * scaled.to(bench.dtype)


def _softmax(bench: _Bench, sizes: Sizes) -> torch.Tensor:
    rows = bench.take(7, *sizes, bench.shapes.vocabulary, scale=16.0)
    return torch.softmax(rows, dim=-1, dtype=torch.float32)


def _reduction(bench: _Bench) -> torch.Tensor:
    return bench.take(8, REDUCTION).sum().reshape(1)


OPERATORS: dict[str, Callable[[_Bench, Sizes], torch.Tensor]] = {
    "linear": partial(_linear, lambda s: (s.hidden, s.intermediate)),
    "linear_down": partial(_linear, lambda s: (s.intermediate, s.hidden)),
    "logits": partial(_linear, lambda s: (s.hidden, s.vocabulary)),
    "attention": _attention,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
}
