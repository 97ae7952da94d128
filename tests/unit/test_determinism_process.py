"""Variables for a measuring child, without torch."""

from __future__ import annotations

import os
import subprocess
import sys

from driftpin.settings.process import child_environment
from driftpin.settings.recipe import Recipe


def recipe(threads: int | None = None) -> Recipe:
    return Recipe(engine="transformers", model="m", threads=threads)


def test_a_child_gets_the_fixed_variables() -> None:
    added = child_environment(recipe(), {})
    assert added["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert added["PYTHONHASHSEED"] == "0"
    assert added["HF_HUB_OFFLINE"] == added["TRANSFORMERS_OFFLINE"] == "1"
    assert "OMP_NUM_THREADS" not in added


def test_threads_are_passed_on_when_asked_for() -> None:
    added = child_environment(recipe(threads=2), {})
    assert (added["OMP_NUM_THREADS"], added["MKL_NUM_THREADS"]) == ("2", "2")


def test_what_the_user_set_is_left_alone_even_when_empty() -> None:
    added = child_environment(recipe(threads=2), {"PYTHONHASHSEED": "7", "HF_HUB_OFFLINE": "", "OMP_NUM_THREADS": "4"})
    assert {"PYTHONHASHSEED", "HF_HUB_OFFLINE", "OMP_NUM_THREADS"} & set(added) == set()
    assert added["MKL_NUM_THREADS"] == "2"


def test_the_process_itself_is_the_default(monkeypatch: object) -> None:
    assert set(child_environment(recipe())) == set(child_environment(recipe(), os.environ))


def test_it_needs_no_torch() -> None:
    code = "import sys, driftpin.settings.process; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
