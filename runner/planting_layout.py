"""Changes of a model's layout: a block gone, another rotary base, rows in another order. Knows config.json's names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from driftpin.errors import ModelError
from runner.planting_folder import CONFIG, copy_model, read, rewrite, write

LAYER = re.compile(r"^(.*\.layers\.)(\d+)(\..*)$")
PER_LAYER = ("layer_types",)  # lists of the configuration with one entry per block
BASE = "rope_theta"


def remove(source: Path, target: Path, block: int) -> int:
    """Take one block out and renumber those behind it, as a wrong conversion does."""
    config = read(source, CONFIG)
    if not 0 <= block < config["num_hidden_layers"]:
        raise ModelError(f"{source} has {config['num_hidden_layers']} blocks, none with the number {block}.")
    changed = rewrite(source, target, lambda tensors: _renumber(tensors, block), CONFIG)
    config["num_hidden_layers"] -= 1
    for name in PER_LAYER:
        if config.get(name):
            config[name] = config[name][:block] + config[name][block + 1 :]
    write(target, CONFIG, config)
    return changed


def _renumber(tensors: dict[str, Any], block: int) -> None:
    old = dict(tensors)
    tensors.clear()
    for name, tensor in old.items():
        found = LAYER.match(name)
        number = int(found[2]) if found else -1
        if not found or number < block:
            tensors[name] = tensor
        elif number > block:
            tensors[f"{found[1]}{number - 1}{found[3]}"] = tensor


def rope(source: Path, target: Path, factor: float) -> int:
    """The rotary base times `factor`, wherever the configuration writes it."""
    copy_model(source, target, CONFIG)
    config = read(source, CONFIG)
    changed = _scale(config, factor)
    if not changed:
        raise ModelError(f"The configuration in {source} names no {BASE}.", remedy="Take a model that writes it.")
    write(target, CONFIG, config)
    return changed


def _scale(value: Any, factor: float) -> int:
    if not isinstance(value, dict):
        return 0
    changed = 0
    for name, part in value.items():
        if name == BASE:
            value[name] = part * factor
            changed += 1
        else:
            changed += _scale(part, factor)
    return changed


def permute(source: Path, target: Path) -> int:
    """Queries and keys of every block in the interleaved order of their halves, as an unconverted checkpoint has."""
    config = read(source, CONFIG)
    heads = int(config["num_attention_heads"])
    counts = {"q_proj.weight": heads, "k_proj.weight": int(config.get("num_key_value_heads") or heads)}

    def interleave(tensors: dict[str, Any]) -> None:
        for name, tensor in list(tensors.items()):
            for ending, count in counts.items():
                if name.endswith(ending):
                    size = tensor.shape[0] // count
                    rows = tensor.view(count, size // 2, 2, tensor.shape[1])
                    tensors[name] = rows.transpose(1, 2).reshape(tensor.shape).contiguous()

    return rewrite(source, target, interleave)
