"""`driftpin init`: a configuration and a suite to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftpin.cli.out import console, plain
from driftpin.errors import ConfigError


def init(folder: Annotated[Path, typer.Argument(help="where to write")] = Path()) -> None:
    """Write a commented driftpin.toml and a sample suite; nothing that exists is overwritten."""
    from driftpin.settings.starting import SUITE_FILE, starter_config, starter_suite  # noqa: PLC0415 - start-up time

    files = {folder / "driftpin.toml": starter_config(), folder / SUITE_FILE: starter_suite()}
    for path in files:
        if path.exists():
            raise ConfigError(f"{path} exists already.", remedy="Choose another folder, or edit that file.")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        console().print(f"wrote {plain(path)}")
    console().print("next: [bold]driftpin baseline bless try-me[/], then [bold]driftpin replay try-me[/]")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(init)
