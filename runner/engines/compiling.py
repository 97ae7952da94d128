"""Keeps `generate` from compiling the model of its own accord, in transformers 4 and 5. Knows no canary."""

from __future__ import annotations

from typing import Any

from runner.sampling import known_names

SWITCH = "disable_compile"


def uncompiled(model: Any) -> dict[str, Any]:
    """Arguments for `generate` under which `model` runs as it is.

    transformers without the switch (4.48) compiles whenever a static cache stands on a GPU; there the model is made to
    hand out its plain forward instead.
    """
    if SWITCH in known_names():
        return {SWITCH: True}
    model.get_compiled_call = lambda compile_config: model.__call__
    return {}
