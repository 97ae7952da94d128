"""The head of a trace: ids in and out and what each output position's logits looked like.

Identity is decided by prompt ids, output ids and logit digests alone; all else here is derived and shown. Knows
nothing of torch: the runner fills the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.canonical import sha256_hex
from driftpin.trace import columns
from driftpin.trace.digest import SCHEME
from driftpin.trace.probe import Arm, Probe, Shape, StopReason

KIND = "head"
TOP_K = 20  # alternatives kept per position


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The identity facts of a trace: two traces that differ here are incomparable, whatever their numbers say."""

    probe: Probe
    arm: Arm
    shape: Shape
    batch: str  # what the shape was made of, for example "rows=1" or "rows=4,filler=64"
    cache: str  # cache class and length, for example "DynamicCache" or "StaticCache:512"
    token_limit: int
    k: int = TOP_K
    logprobs: str = "raw"  # log-softmax of the raw logits, before any processor
    scheme: str = SCHEME

    def to_json(self) -> dict[str, Any]:
        """As written into the blob."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Declaration:
        """As read from the blob."""
        enums = {"probe": Probe(value["probe"]), "arm": Arm(value["arm"]), "shape": Shape(value["shape"])}
        return cls(**(value | enums))


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """N output positions, k alternatives, P prompt tokens. Logarithms are natural; logits as the model gave them."""

    declared: Declaration
    stop: StopReason
    dtype: str  # of the raw logits, for example "bfloat16"
    vocab: int  # entries per logit row
    prompt_ids: NDArray[np.int32]  # [P]
    output_ids: NDArray[np.int32]  # [N], the end token included, nothing after it
    logprob: NDArray[np.float32]  # [N] of the output id
    margin: NDArray[np.float32]  # [N] top-1 minus top-2 logit
    entropy: NDArray[np.float32]  # [N] in nats
    logsumexp: NDArray[np.float32]  # [N]
    topk_ids: NDArray[np.int32]  # [N, k] by (logit descending, id ascending)
    topk_logits: NDArray[np.float32]  # [N, k]
    boundary_ties: NDArray[np.int32]  # [N] ids left out although their logit equals the k-th
    digest: NDArray[np.uint64]  # [N] digest v1 sum of the raw logit row
    nonfinite: NDArray[np.int32]  # [N] non-finite logits in the row
    greedy: NDArray[np.uint8]  # [N] a `Greedy` per position

    @property
    def topk_logprobs(self) -> NDArray[np.float32]:
        """Log-probabilities of the alternatives, [N, k]."""
        return np.asarray(self.topk_logits - self.logsumexp[:, None], dtype=np.float32)

    def to_bytes(self) -> bytes:
        """The canonical uncompressed bytes."""
        meta = {"declared": self.declared.to_json(), "stop": self.stop, "dtype": self.dtype, "vocab": self.vocab}
        arrays = {name: getattr(self, name) for name in ARRAYS}
        return columns.encode(columns.Columns(kind=KIND, meta=meta, arrays=arrays))

    @property
    def sha256(self) -> str:
        """The name under which the blob is stored."""
        return sha256_hex(self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Head:
        """Read a blob; raises `CorruptBlobError`."""
        read = columns.decode(data, KIND)
        meta = read.meta
        with columns.reading(KIND):
            return cls(
                declared=Declaration.from_json(meta["declared"]),
                stop=StopReason(meta["stop"]),
                dtype=meta["dtype"],
                vocab=meta["vocab"],
                **{name: read.arrays[name] for name in ARRAYS},
            )


ARRAYS = tuple(f.name for f in fields(Head) if f.name not in ("declared", "stop", "dtype", "vocab"))
