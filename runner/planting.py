"""Planted changes: a copy of a model folder with one thing different, for the demonstration and for sensitivity tests.

`python -m runner.planting SOURCE TARGET damage --tensor NAME` or `… penalty --value 1.3`. The source is never touched;
files that stay the same are linked. Knows no replay.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from driftpin.errors import DriftpinError, ModelError

WEIGHTS, GENERATION = "model.safetensors", "generation_config.json"


def copy_model(source: Path, target: Path, changed: str) -> None:
    """A folder in which every file but `changed` is a link to the source's; raises `ModelError`."""
    if not (source / changed).is_file():
        raise ModelError(f"{source} has no {changed}.", remedy="Name the folder of a model in safetensors.")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_file() and path.name != changed:
            _link(path, target / path.name)


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)  # another file system


def damage(source: Path, target: Path, tensor: str) -> None:
    """Zero one quarter of one tensor's rows, as a failed write would."""
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - torch is heavy

    copy_model(source, target, WEIGHTS)
    tensors = load_file(source / WEIGHTS)
    if tensor not in tensors:
        raise ModelError(f"{source} has no tensor {tensor!r}.", remedy="Name one of the model's own.")
    damaged = tensors[tensor].clone()
    damaged[: max(1, damaged.shape[0] // 4)] = 0
    tensors[tensor] = damaged
    save_file(tensors, target / WEIGHTS, metadata={"format": "pt"})


def penalty(source: Path, target: Path, value: float) -> None:
    """Leave a repetition penalty in the generation configuration, as fine-tuning scripts do."""
    copy_model(source, target, GENERATION)
    settings = json.loads((source / GENERATION).read_text("utf-8"))
    settings["repetition_penalty"] = value
    (target / GENERATION).write_text(json.dumps(settings, indent=2), "utf-8")


def main(arguments: list[str]) -> int:
    """Exit status 0, or 2 with a sentence on standard error."""
    parser = argparse.ArgumentParser(prog="python -m runner.planting")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("change", choices=["damage", "penalty"])
    parser.add_argument("--tensor", default="")
    parser.add_argument("--value", type=float, default=1.3)
    asked = parser.parse_args(arguments)
    plant: dict[str, Callable[[], None]] = {
        "damage": lambda: damage(asked.source, asked.target, asked.tensor),
        "penalty": lambda: penalty(asked.source, asked.target, asked.value),
    }
    try:
        plant[asked.change]()
    except DriftpinError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
