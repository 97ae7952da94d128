"""docs/commands.md holds every command and option there is, and no other."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import typer

from driftpin.cli.app import app

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("document_commands", ROOT / "scripts" / "document_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_command_tree_says(generator: ModuleType) -> None:
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert written == generator.page(), "run `python scripts/document_commands.py`"


def test_every_top_level_command_and_its_options_are_on_the_page() -> None:
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert {"replay", "compare", "show", "baseline", "db", "doctor", "demo", "monitor"} <= set(commands)
    for name, command in commands.items():
        section = written.partition(f"## `driftpin {name}`\n")[2].partition("\n## ")[0]
        assert section, name
        missing = [opt for p in command.params for opt in p.opts if opt.startswith("--") and f"`{opt}`" not in section]
        assert [m for m in missing if m != "--help"] == [], name


def test_every_top_level_command_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in typer.main.get_command(app).commands if f"driftpin {name}" not in readme] == []  # type: ignore[attr-defined]
