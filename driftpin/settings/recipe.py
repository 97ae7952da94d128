"""What a target asks for: the recipe, hashed and immutable once a replay used it. Knows nothing of files or stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from driftpin.canonical import digest_of

PLACEMENT = ("path", "device")  # where things lie on one machine: stored, never hashed


class Sampling(StrEnum):
    """Whose generation settings act."""

    CLEAN = "clean"  # ours, complete and explicit: greedy and nothing else
    AS_SHIPPED = "as_shipped"  # the model's generation_config.json, as it acts for users


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a target's model is run; `generation` holds acting settings by name, `options` is the engine's own."""

    engine: str  # "transformers" or "fake"
    model: str  # the model's name in the configuration
    path: str = ""  # folder of its files
    revision: str | None = None
    dtype: str = "float32"  # "float32", "bfloat16" or "float16"
    device: str = "cpu"  # "cpu" or "cuda:0"
    sampling: Sampling = Sampling.CLEAN
    generation: Mapping[str, Any] = field(default_factory=dict)
    attention: str = "sdpa"  # attn_implementation: "sdpa" or "eager"
    sdpa: str = "math"  # the pinned back end: "math", "flash", "efficient", "cudnn"
    cache: str = "dynamic"  # "dynamic" or "static"
    threads: int | None = None  # CPU threads; None leaves the library's own number, which is recorded
    nondeterministic_ops: str = "refuse"  # or "warn": run on although an operation has no deterministic version
    trust_remote_code: bool = False
    image: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As stored with a target revision."""
        return asdict(self) | {"generation": dict(self.generation), "options": dict(self.options)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Recipe:
        """As read from the store."""
        return cls(**{**value, "sampling": Sampling(value["sampling"])})

    @property
    def digest(self) -> str:
        """sha256 over everything but the placement."""
        return digest_of({name: part for name, part in self.to_json().items() if name not in PLACEMENT})
