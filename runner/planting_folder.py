"""Copies of a model folder in which some files differ: the rest is linked. Knows files, nothing of what is planted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftpin.errors import ModelError

WEIGHTS, CONFIG, GENERATION = "model.safetensors", "config.json", "generation_config.json"

Edit = Callable[[dict[str, Any]], None]  # changes tensors by name, in place


def copy_model(source: Path, target: Path, *changed: str) -> None:
    """A folder in which every file but `changed` is a link to the source's; raises `ModelError`."""
    for name in changed:
        if not (source / name).is_file():
            raise ModelError(f"{source} has no {name}.", remedy="Name the folder of a model in safetensors.")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_file() and path.name not in changed:
            _link(path, target / path.name)


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)  # another file system


def rewrite(source: Path, target: Path, edit: Edit, *more: str) -> int:
    """A copy whose tensors `edit` has changed; returns how many numbers differ in their bits.

    `more` names files that the caller writes.
    """
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - torch is heavy

    copy_model(source, target, WEIGHTS, *more)
    before, tensors = load_file(source / WEIGHTS), load_file(source / WEIGHTS)
    edit(tensors)
    save_file(tensors, target / WEIGHTS, metadata={"format": "pt"})
    return sum(_differing(before[name], tensors.get(name)) for name in before)


def _differing(old: Any, new: Any) -> int:
    """Numbers whose bits differ, NaN against NaN included only where they do; a tensor that is gone counts whole."""
    import torch  # noqa: PLC0415 - heavy

    if new is None or new.shape != old.shape:
        return int(old.numel())
    kind = {2: torch.int16, 4: torch.int32}[old.element_size()]
    return int((old.view(kind) != new.view(kind)).sum())


def read(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of the folder."""
    value: dict[str, Any] = json.loads((folder / name).read_text("utf-8"))
    return value


def write(folder: Path, name: str, value: dict[str, Any]) -> None:
    """A JSON file of the folder, as transformers writes them."""
    (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8")
