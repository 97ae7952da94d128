"""The reference arm computes float32 in float32, whatever variables and recipe would let through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

CODE = """
import json, os, sys
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm
from runner.determinism import prepare
recipe = Recipe(engine="transformers", model="m", threads=1, nondeterministic_ops="warn")
applied = prepare(recipe, Arm(sys.argv[1]))
force = applied.to_json()["in_force"]
print(json.dumps([dict(applied.differences), force, os.environ.get("ONEDNN_DEFAULT_FPMATH_MODE")]))
"""


def prepared(arm: str) -> Any:
    variables = {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, arm], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_variable_that_loosens_float32_acts_on_the_native_arm_only() -> None:
    differences, force, left = prepared("reference")
    assert differences == {}
    assert left is None
    assert force["variable.ONEDNN_DEFAULT_FPMATH_MODE"] == {"value": None}
    assert force["deterministic_warn_only"] == {"value": False}
    _, force, left = prepared("native")
    assert left == "BF16"
    assert "variable.ONEDNN_DEFAULT_FPMATH_MODE" not in force
