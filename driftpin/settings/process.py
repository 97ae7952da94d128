"""The variables under which a measuring process starts. They act only when set before the interpreter or CUDA starts.

Knows no library: a launcher without torch uses it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from driftpin.settings.recipe import Recipe

FIXED = {
    "PYTHONHASHSEED": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def child_environment(recipe: Recipe, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables to add for a child that measures `recipe`; one that the user has set (even to "") is left out.

    `environ` is what the child would get anyway, by default this process's own: start it with `environ | added`.
    """
    present = os.environ if environ is None else environ
    wanted = dict(FIXED)
    if recipe.threads is not None:
        wanted |= dict.fromkeys(THREADS, str(recipe.threads))
    return {name: value for name, value in wanted.items() if name not in present}
