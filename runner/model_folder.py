"""A model's files, before any library touches them: there, whole, and safetensors. Knows no tensor's meaning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from driftpin.errors import ModelError

CONFIG, INDEX, SINGLE = "config.json", "model.safetensors.index.json", "model.safetensors"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
NAME_IT = "Set the model's `path` to the folder that holds config.json and its *.safetensors."
FETCH_AGAIN = "Copy or download the file again."
CONVERT = "Convert it where it came from: load it there and call save_pretrained(folder, safe_serialization=True)."


def check_folder(path: str) -> tuple[Path, ...]:
    """Weight files of the model in the folder, sorted, each with a sound header; `ModelError` says what is wrong."""
    if not path:
        raise ModelError("The model has no path.", remedy=NAME_IT)
    folder = Path(path).expanduser()
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise ModelError(f"The model's folder {folder} {what}.", remedy=NAME_IT)
    read_json(folder / CONFIG)
    files = _weight_files(folder)
    for file in files:
        _check_header(file)
    return files


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; `ModelError` when it is missing, unreadable or something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path.parent} holds no {path.name}.", remedy=NAME_IT) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON: {error}.", remedy=FETCH_AGAIN) from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds no JSON object.", remedy=FETCH_AGAIN)
    return value


def _weight_files(folder: Path) -> tuple[Path, ...]:
    if (folder / SINGLE).is_file():
        return (folder / SINGLE,)
    if (folder / INDEX).is_file():
        return _shards(folder)
    if any(True for pattern in PICKLES for _ in folder.glob(pattern)):
        raise ModelError(f"{folder} holds pickled weights only; driftpin never unpickles.", remedy=CONVERT)
    raise ModelError(f"{folder} holds no {SINGLE} and no {INDEX}.", remedy=NAME_IT)


def _shards(folder: Path) -> tuple[Path, ...]:
    names = read_json(folder / INDEX).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ModelError(f"{folder / INDEX} has no weight_map.", remedy=FETCH_AGAIN)
    shards = tuple(folder / name for name in sorted(set(names.values())))
    if missing := [shard.name for shard in shards if not shard.is_file()]:
        raise ModelError(f"{folder} lacks {', '.join(missing)}, which {INDEX} names.", remedy=FETCH_AGAIN)
    return shards


def _check_header(file: Path) -> None:
    """safetensors checks that the header is sound and that the file is as long as it says."""
    try:
        with safe_open(file, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise ModelError(f"The weights {file} cannot be read: {error}.", remedy=FETCH_AGAIN) from error
