"""The commands and their global options; errors become one sentence and an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftpin.cli import baseline, compare, configuration, database, environments, replay, service, start, suites
from driftpin.cli.out import errors, plain
from driftpin.cli.session import Session
from driftpin.errors import DriftpinError, ReplayInterruptedError

CLOSED_PIPE = 141  # what a shell reports for SIGPIPE

app = typer.Typer(
    name="driftpin",
    help="Pins the environment of language-model inference and watches it for drift.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def options(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option(help="the configuration; default ./driftpin.toml")] = None,
    store: Annotated[str | None, typer.Option(help="the store's address, instead of the configured one")] = None,
) -> None:
    """Global options come before the command."""
    flags = {} if store is None else {"store.url": store}
    context.obj = Session(config_path=config, flags=flags)


for module in (start, replay, compare, environments, service):
    module.register(app)
app.add_typer(baseline.app, name="baseline")
app.add_typer(suites.app, name="suite")
app.add_typer(configuration.app, name="config")
app.add_typer(database.app, name="db")


def run(arguments: list[str]) -> int:
    """Exit status of one command line: the command's own, 2 for an error, 130 for an interrupt."""
    try:
        return int(app(arguments, standalone_mode=False) or 0)
    except DriftpinError as error:
        errors().print(f"[bold red]error:[/] {plain(error.message)}", soft_wrap=True)
        if error.remedy:
            errors().print(f"  {plain(error.remedy)}", soft_wrap=True)
        return error.exit_code
    except typer.TyperException as error:
        _show_usage(error)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        errors().print("interrupted; everything recorded before is kept")
        return ReplayInterruptedError.exit_code
    except SystemExit as leaving:
        # Typer itself leaves with 1, which means drift here, when whoever reads our output has gone.
        if isinstance(leaving.__context__, BrokenPipeError):
            return CLOSED_PIPE
        raise
    except OSError as error:
        if error.filename is None:
            raise
        errors().print(f"[bold red]error:[/] {plain(error.filename)}: {plain(error.strerror)}.", soft_wrap=True)
        return DriftpinError.exit_code


def _show_usage(error: typer.TyperException) -> None:
    """Usage and what is wrong with it, on standard error. Typer brings a click of its own; only `show` is common."""
    show = getattr(error, "show", None)
    if callable(show):
        show()
    else:
        errors().print(f"[bold red]error:[/] {plain(error.format_message())}", soft_wrap=True)
