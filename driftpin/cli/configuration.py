"""`driftpin config check|show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from driftpin.cli.out import Format, FormatOption, emit, plain
from driftpin.cli.session import current
from driftpin.counting import counted

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(help="The desired state.", no_args_is_help=True)

CHECK = "driftpin.config_check/1"


@app.command()
def check(context: typer.Context, form: FormatOption = Format.TEXT) -> None:
    """Validate the configuration and every suite that it names."""
    from driftpin.workflow.order import named_suite  # noqa: PLC0415 - start-up time

    config = current(context).config()
    suites = {name: named_suite(config, name).digest for name in config.tables.suites}
    body = {"schema": CHECK, "path": str(config.path), "targets": sorted(config.targets), "suites": suites}
    text = f"{config.path}: {counted(len(config.targets), 'target')}, {counted(len(suites), 'suite')}, all valid"
    emit(form, body, lambda c: c.print(plain(text)))


@app.command()
def show(
    context: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="say where each value comes from")] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Every value in force; secrets are shown as the place that they are read from."""
    from driftpin.settings.show import config_origins, config_to_json  # noqa: PLC0415 - start-up time

    config = current(context).config()

    def text(c: Console) -> None:
        for key, value, where in config_origins(config):
            tail = f"  [dim]{plain(where)}[/]" if origin else ""
            c.print(f"{plain(key)} = {plain(value)}{tail}", soft_wrap=True)

    emit(form, config_to_json(config), text)
