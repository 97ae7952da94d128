"""The models of the matrix: SmolLM2, and tiny ones with random weights of several architectures. Knows no change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftpin.errors import ConfigError

LAYERS = "model.layers"


@dataclass(frozen=True, kw_only=True)
class Model:
    """One model in one number format; `block` is where faults are planted."""

    id: str
    dtype: str
    build: str  # a key of `BUILDERS`
    block: int
    blocks: int
    merge: str = ""  # of its tokenizer, used by the canaries; "" for a tokenizer without merges
    experts: bool = False
    since: tuple[int, int] = (4, 0)  # version of transformers that brought the architecture

    def path(self, block: int) -> str:
        """The module path of a block."""
        return f"{LAYERS}.{block}"

    @property
    def mlp_out(self) -> str:
        """The tensor of the block's MLP that is damaged."""
        part = "block_sparse_moe.experts.0.w2" if self.experts else "mlp.down_proj"
        return f"{self.path(self.block)}.{part}.weight"

    def folder(self, work: Path) -> Path:
        """The model's files, made at first use."""
        return BUILDERS[self.build](self, work / "models" / self.id)


def named(name: str) -> Model:
    """A model of the matrix; raises `ConfigError`."""
    found = next((model for model in MODELS if model.id == name), None)
    if found is None:
        raise ConfigError(f"There is no model {name!r}.", remedy=f"Use {', '.join(m.id for m in MODELS)}.")
    return found


def _smollm2(model: Model, folder: Path) -> Path:
    from runner.demo_weights import ensure_smollm2  # noqa: PLC0415 - heavy

    del folder  # it lies in driftpin's own cache
    return ensure_smollm2(model.dtype)


def _tiny(kind: str) -> Callable[[Model, Path], Path]:
    def build(model: Model, folder: Path) -> Path:
        if not (folder / "config.json").is_file():
            from benchmarks.planted import tiny  # noqa: PLC0415 - torch is heavy

            fresh = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            tiny.BUILDERS[kind](fresh, model.blocks)
            _as_dtype(fresh, model.dtype)
            _readable_everywhere(fresh)
            fresh.replace(folder)
        return folder

    return build


def _as_dtype(folder: Path, dtype: str) -> None:
    """Weights and configuration in the model's own number format, as a published model has them."""
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - torch is heavy

    from runner.loading import DTYPES  # noqa: PLC0415

    weights = folder / "model.safetensors"
    tensors = {name: tensor.to(DTYPES[dtype]) for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, metadata={"format": "pt"})
    _write(folder / "config.json", _read(folder / "config.json") | {"dtype": dtype, "torch_dtype": dtype})


def _readable_everywhere(folder: Path) -> None:
    """As published models are: what transformers 5 writes in a new form stands there in the old one too."""
    config = _read(folder / "config.json")
    rope = config["rope_parameters"]
    bases = {name: part["rope_theta"] for name, part in rope.items() if isinstance(part, dict)}
    if bases:
        old = {"rope_theta": bases["full_attention"], "rope_local_base_freq": bases["sliding_attention"]}
    else:
        old = {"rope_theta": rope["rope_theta"]}
    _write(folder / "config.json", config | old)
    template = folder / "chat_template.jinja"
    tokenizer = _read(folder / "tokenizer_config.json") | {"tokenizer_class": "PreTrainedTokenizerFast"}
    for name in ("backend", "extra_special_tokens"):
        tokenizer.pop(name, None)
    _write(folder / "tokenizer_config.json", tokenizer | {"chat_template": template.read_text("utf-8")})
    template.unlink()


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2), "utf-8")


BUILDERS: dict[str, Callable[[Model, Path], Path]] = {
    "smollm2": _smollm2,
    **{kind: _tiny(kind) for kind in ("llama", "qwen3", "gemma3", "mixture")},
}
SMOL: dict[str, Any] = {"build": "smollm2", "block": 14, "blocks": 30, "merge": "Ġth ree"}
TINY: dict[str, Any] = {"block": 3, "blocks": 6}
MODELS = (
    Model(id="smollm2-bf16", dtype="bfloat16", **SMOL),
    Model(id="smollm2-f32", dtype="float32", **SMOL),
    Model(id="llama-bf16", dtype="bfloat16", build="llama", **TINY),
    Model(id="llama-f32", dtype="float32", build="llama", **TINY),
    Model(id="qwen3-bf16", dtype="bfloat16", build="qwen3", since=(4, 51), **TINY),
    Model(id="gemma3-bf16", dtype="bfloat16", build="gemma3", since=(4, 50), **TINY),
    Model(id="mixture-bf16", dtype="bfloat16", build="mixture", experts=True, **TINY),
)
