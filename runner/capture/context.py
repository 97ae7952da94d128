"""What is stored and shown beside an environment but never hashed. Names under `now.` change with every replay."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import platform
import socket
from functools import partial
from pathlib import Path
from typing import Any

from driftpin.environment.fact import Fact
from runner.capture.libraries import other_packages
from runner.capture.reading import known_or_unknown
from runner.capture.variables import placement_facts
from runner.determinism.applied import Applied
from runner.loading import Loaded

_ordinals = itertools.count()
JIT = {"triton": ("TRITON_CACHE_DIR", "~/.triton/cache"), "cuda": ("CUDA_CACHE_PATH", "~/.nv/ComputeCache")}


def context_facts(loaded: Loaded, applied: Applied | None) -> dict[str, Fact]:
    """Host, kernel, versions, other packages, what the library said while loading, what was asked of it."""
    facts: dict[str, Fact] = {
        "host": socket.gethostname(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "driftpin": known_or_unknown(lambda: importlib.metadata.version("driftpin")),
        "packages": known_or_unknown(other_packages),
        "model.path": str(loaded.path),
        "warnings": list(loaded.warnings),
        "now.ordinal": next(_ordinals),
        "now.pid": os.getpid(),
    }
    asked = {} if applied is None else {"determinism": _jsonable(applied.to_json())}
    return facts | asked | jit_facts() | placement_facts()


def jit_facts() -> dict[str, Fact]:
    """`now.jit.<compiler>`: how many entries its cache holds; kernels built earlier may run instead of new ones."""
    folders = {name: Path(os.environ.get(variable) or usual) for name, (variable, usual) in JIT.items()}
    return {f"now.jit.{name}": known_or_unknown(partial(_entries, folder)) for name, folder in folders.items()}


def _entries(folder: Path) -> int:
    folder = folder.expanduser()
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0


def _jsonable(value: Any) -> Any:
    """Floats as text, because a fact holds none."""
    if isinstance(value, dict):
        return {str(name): _jsonable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(part) for part in value]
    return value if isinstance(value, bool | int | str | None) else str(value)
