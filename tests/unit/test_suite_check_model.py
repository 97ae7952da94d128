"""A model named on the command line becomes a recipe; findings of a suite alone carry level and remedy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driftpin.errors import ConfigError, ModelError
from driftpin.settings.load import load_config
from driftpin.suite.builtin import builtin_suite
from driftpin.suite.finding import FindingKind, Level
from driftpin.suite.warnings import suite_findings, suite_warnings
from driftpin.workflow.suite_check import check_suite, exit_code, shape
from driftpin.workflow.suite_check_model import model_recipe

CONFIG = '[models.mine]\npath = "weights"\ndtype = "float16"\ntrust_remote_code = true\n'


def test_a_configured_model_wins_over_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "driftpin.toml").write_text(CONFIG)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    config = load_config(tmp_path / "driftpin.toml", {})
    recipe = model_recipe(config, "mine")
    assert (recipe.model, recipe.dtype, recipe.trust_remote_code) == ("mine", "float16", True)
    assert Path(recipe.path) == tmp_path / "weights"
    with pytest.raises(ConfigError, match='did you mean "mine"'):
        model_recipe(config, "mime")


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"torch_dtype": "float16"}, "float16"),
        ({}, "float32"),
        ({"dtype": "float8_e4m3fn"}, "float32"),
        (["no object"], "float32"),
    ],
)
def test_a_folder_runs_in_its_own_dtype(config: object, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    recipe = model_recipe(None, str(tmp_path))
    assert (recipe.dtype, recipe.model, recipe.path) == (dtype, tmp_path.name, str(tmp_path))
    assert recipe.trust_remote_code is False


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config.json cannot be read"):
        model_recipe(None, str(tmp_path))
    with pytest.raises(ConfigError, match="neither a folder nor a model"):
        model_recipe(None, str(tmp_path / "absent"))


def test_canaries_without_checks_are_a_note() -> None:
    core = builtin_suite()
    [finding] = suite_findings(core)
    assert (finding.kind, finding.level) == (FindingKind.UNCHECKED, Level.NOTE)
    assert set(finding.canaries) == {canary.id for canary in core.canaries if not canary.checks}
    assert suite_warnings(core) == ()


def test_only_strict_and_a_warning_make_an_exit_code() -> None:
    core = builtin_suite()
    clean, twins = check_suite(core), check_suite(replace(core, canaries=(*core.canaries, twin_of_first())))
    assert [exit_code(found, strict=strict) for found in (clean, twins) for strict in (False, True)] == [0, 0, 0, 1]
    body = shape(twins, strict=True)
    assert body["exit_code"] == 1
    assert body["model"] is None
    [twin] = [found for found in body["findings"] if found["kind"] == "twin"]
    assert twin["canaries"] == ["years", "twin"]
    assert twin["remedy"]
    assert twin["sentence"] in body["warnings"]


def twin_of_first():  # type: ignore[no-untyped-def]
    return replace(builtin_suite().canaries[0], id="twin")
