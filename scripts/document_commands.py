"""Writes docs/commands.md from the command tree: `python scripts/document_commands.py`. A test compares the two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from driftpin.cli.app import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
HEADER = """\
# Commands

Written by `scripts/document_commands.py`; edit the commands' own help instead. `--config` and `--store` come before the
command. Exit codes: 0 nothing to worry about, 1 drift (or a failed check of `doctor`), 2 driftpin could not do what was
asked, 3 nothing can be said, 130 interrupted.
"""


def page() -> str:
    """The whole page."""
    return HEADER + _command(typer.main.get_command(app), "driftpin")


def _command(command: Any, path: str) -> str:
    """A command's section, then those of its subcommands."""
    nested = getattr(command, "commands", {})
    text = f"\n## `{path}`\n\n{' '.join((command.help or '').split())}\n"
    rows = list(_parameters(command))
    if rows:
        text += "\n" + "\n".join(rows) + "\n"
    return text + "".join(_command(inner, f"{path} {name}") for name, inner in nested.items())


def _parameters(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.name == "help":
            continue
        is_option = parameter.param_type_name == "option"
        names = ", ".join(f"`{name}`" for name in parameter.opts) if is_option else f"`{parameter.name.upper()}`"
        needed = " (required)" if parameter.required and is_option else ""
        yield f"- {names}{needed}: {getattr(parameter, 'help', None) or ''}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
