"""Refuses a rotary base that the installed transformers would overlook. Knows config.json; no tensor.

transformers 5 writes `rope_parameters`, which 4 does not read: it would run with its default base, without a word
(measured with 4.48.3 and 4.57.6).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformers

from driftpin.errors import ModelError
from runner.model_folder import CONFIG, read_json

REMEDY = "Run it where transformers 5 is, or write rope_theta and rope_scaling into config.json beside rope_parameters."


def refuse_overlooked_rotary(folder: Path, config: Any) -> None:
    """`ModelError` where the file's rotary parameters are not what the loaded `config` runs with."""
    written = read_json(folder / CONFIG).get("rope_parameters")
    if not transformers.__version__.startswith("4.") or not isinstance(written, Mapping):
        return
    base, used = written.get("rope_theta"), getattr(config, "rope_theta", None)
    if base is not None and base != used:
        raise _overlooked(folder, f"rope_theta = {base}", f"it would run with {used}")
    kind = written.get("rope_type", "default")
    if kind != "default" and not getattr(config, "rope_scaling", None):
        raise _overlooked(folder, f"rope_type = {kind!r}", "it would run unscaled")


def _overlooked(folder: Path, said: str, effect: str) -> ModelError:
    version = transformers.__version__
    return ModelError(
        f"{folder / CONFIG} says {said} where transformers {version} does not look: {effect}.", remedy=REMEDY
    )
