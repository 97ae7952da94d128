"""Facts about a model's files: sha256 of weights, configuration and remote code. Knows nothing of what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from driftpin.environment.fact import Fact
from runner.capture.files import file_sha256
from runner.capture.reading import known_or_unknown


def weight_facts(files: Iterable[Path], *, verify: bool = False) -> dict[str, Fact]:
    """`weights.<file>`: sha256; `verify` reads each file in full instead of trusting what is remembered."""
    return {f"weights.{file.name}": known_or_unknown(partial(file_sha256, file, verify=verify)) for file in files}


def configuration_facts(folder: Path, *, code: bool) -> dict[str, Fact]:
    """`config.file`, `generation.file` where there is one, and with `code` every Python file of the folder."""
    named = {"config.file": folder / "config.json", "generation.file": folder / "generation_config.json"}
    if code:
        named |= {f"config.code.{file.name}": file for file in sorted(folder.glob("*.py"))}
    return {name: known_or_unknown(partial(file_sha256, file)) for name, file in named.items() if file.exists()}
