"""The suite that a configuration names is the one that is ordered."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftpin.errors import ConfigError
from driftpin.settings.load import load_config
from driftpin.workflow.order import order_of

TEXT = '[suites.s]\nbuiltin = "{name}"\n[targets.t]\nengine = "fake"\nsuite = "s"\n'


def test_the_builtin_suite_is_found_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "driftpin.toml"
    path.write_text(TEXT.format(name="core"))
    assert order_of(load_config(path, {}), "t").suite.name == "core"


def test_another_builtin_suite_is_refused_with_the_right_name(tmp_path: Path) -> None:
    path = tmp_path / "driftpin.toml"
    path.write_text(TEXT.format(name="cor"))
    with pytest.raises(ConfigError, match=r"no built-in suite 'cor'\. Write builtin = 'core'"):
        order_of(load_config(path, {}), "t")
