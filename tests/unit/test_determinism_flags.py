"""Switches are set, read back, and their differences told. Each preparation runs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from typing import Any

import pytest
import torch

from driftpin.environment.fact import Unknown
from driftpin.errors import CannotMeasureError
from runner.determinism import Applied, cannot_run, deterministic_error
from runner.determinism.applied import ABSENT, read_back
from runner.determinism.flags import NEW_PRECISION_API, precision_flags, torch_version

START = """
import json, random, warnings
import numpy as np, torch
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm, Probe
from runner.determinism import cannot_run, prepare, prove_attention
def recipe(**parts): return Recipe(engine="transformers", model="m", threads=1, **parts)
def scatter(): torch.ones(3).put_(torch.tensor([0]), torch.tensor([1.0]))
"""


def child(code: str, **variables: str) -> Any:
    """What the last line of `code` prints as JSON, run in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", START + code], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_everything_asked_is_in_force_and_the_generators_repeat() -> None:
    code = """
def draws():
    applied = prepare(recipe(), Arm.NATIVE)
    return applied, [random.random(), float(np.random.rand()), float(torch.rand(()))]
applied, first = draws()
again, second = draws()
print(json.dumps(applied.to_json() | {"first": first, "second": second, "again": dict(again.differences)}))
"""
    told = child(code)
    assert told["differences"] == told["again"] == {}
    assert told["first"] == told["second"]
    force = {name: fact["value"] for name, fact in told["in_force"].items() if "value" in fact}
    absent = {fact["unknown"] for fact in told["in_force"].values() if "value" not in fact}
    assert absent <= {ABSENT.reason}  # an older torch lacks some that are recorded only
    assert force["deterministic_algorithms"] is True
    assert force["deterministic_warn_only"] is False
    assert force["cudnn.benchmark"] is False
    assert force["threads"] == 1
    assert force["compile_disabled"] is True
    assert force["float32_matmul_precision"] == "highest"
    assert force["cuda.matmul.allow_bf16_reduced_precision_reduction"] is True  # recorded, not asked
    assert "cuda.matmul.allow_bf16_reduced_precision_reduction" not in told["asked"]
    old = [name for name in told["in_force"] if name.endswith("allow_tf32")]
    if torch_version() >= NEW_PRECISION_API:
        assert not old  # reading it would raise by now
    else:
        assert [force[name] for name in old] == [False, False]


WARN = 'nondeterministic_ops="warn"'


@pytest.mark.parametrize(
    ("parts", "arm", "refused"), [("", "NATIVE", True), (WARN, "NATIVE", False), (WARN, "REFERENCE", True)]
)
def test_an_operation_without_a_deterministic_version(parts: str, arm: str, refused: bool) -> None:
    code = f"""
prepare(recipe({parts}), Arm.{arm})
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scatter()
    print("null")
except RuntimeError as error:
    told = cannot_run(error)
    print(json.dumps([told.message, told.remedy]))
"""
    told = child(code)
    if refused:
        assert "put_ has no deterministic version" in told[0]
        assert 'nondeterministic_ops = "warn"' in told[1]
    else:
        assert told is None


def test_old_torch_uses_the_old_switches_and_never_both() -> None:
    old, new = precision_flags((2, 8)), precision_flags((2, 9))
    assert set(old) == {"cuda.matmul.allow_tf32", "cudnn.allow_tf32"}
    assert all(flag.asked is False for flag in old.values())
    assert all(name.endswith("fp32_precision") and flag.asked == "ieee" for name, flag in new.items())
    if torch.__version__ >= "2.9":
        assert "cudnn.conv.fp32_precision" in new


def test_a_switch_that_warns_whoever_reads_it_is_read_all_the_same() -> None:
    """torch 2.9 does so for the float32 matmul precision; the suite turns warnings into errors."""

    def warning() -> str:
        warnings.warn("use the younger sister", UserWarning, stacklevel=1)
        return "highest"

    assert read_back({"precision": warning}) == {"precision": "highest"}


def test_a_reader_that_raises_gives_unknown_with_a_reason() -> None:
    def mixed() -> bool:
        raise RuntimeError("mixing old and new API\nC++ trace")

    facts = read_back({"tf32": mixed, "there": lambda: 3})
    assert facts["there"] == 3
    assert facts["tf32"] == Unknown("reading it raised RuntimeError: mixing old and new API")


def test_differences_carry_their_reason() -> None:
    asked = {"a": 1, "b": True, "c": 2, "d": 4, "same": 0}
    in_force = {"a": 2, "b": Unknown("no way"), "c": 3, "same": 0, "more": 9}
    applied = Applied.compared(asked, in_force, {"c": "setting it failed: busy"})
    assert set(applied.differences) == {"a", "b", "c", "d"}
    assert applied.differences["a"] == "asked for 1, but 2 is in force"
    assert "no way" in applied.differences["b"]
    assert applied.differences["c"] == "setting it failed: busy"
    assert ABSENT.reason in applied.differences["d"]


def test_only_refusals_are_recognised() -> None:
    text = "cumsum_cuda_kernel does not have a deterministic implementation, but you set ..."
    found = deterministic_error(RuntimeError(text))
    assert isinstance(found, CannotMeasureError)
    assert "cumsum_cuda_kernel" in found.message
    old = deterministic_error(RuntimeError("... you must set CUBLAS_WORKSPACE_CONFIG=:4096:8 ..."))
    assert old is not None
    assert "cuBLAS" in old.message
    assert deterministic_error(RuntimeError("size mismatch")) is None
    assert cannot_run(RuntimeError("CUDA out of memory")) is None
    assert cannot_run(RuntimeError("No available kernel. Aborting execution.")) is not None
