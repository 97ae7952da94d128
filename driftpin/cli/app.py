"""The commands and their global options; errors become one sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from driftpin.cli import (
    baseline,
    compare,
    configuration,
    database,
    environments,
    replay,
    report,
    service,
    start,
    suites,
)
from driftpin.cli.out import errors, lines, plain
from driftpin.cli.session import Session
from driftpin.errors import DriftpinError, ReplayInterruptedError

INTERRUPTED = "interrupted; everything recorded before is kept"
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


for module in (start, replay, compare, report, environments, service):
    module.register(app)
app.add_typer(baseline.app, name="baseline")
app.add_typer(suites.app, name="suite")
app.add_typer(configuration.app, name="config")
app.add_typer(database.app, name="db")


def run(arguments: list[str]) -> int:
    """Exit status of one command line: the command's own, 2 for an error, 130 for an interrupt."""
    _stop_like_an_interrupt()
    try:
        status = _answered(arguments)
        sys.stdout.flush()  # a full disk shows here, where it still can be said
        return status
    except SystemExit as leaving:
        # Typer itself leaves with 1, which means drift here, when whoever reads our output has gone.
        if isinstance(leaving.__context__, BrokenPipeError):
            return CLOSED_PIPE
        raise
    except BrokenPipeError:
        _forget_output()
        return CLOSED_PIPE
    except OSError as error:
        where = error.filename or "The output could not be written"
        errors().print(f"[bold red]error:[/] {plain(where)}: {plain(error.strerror)}.", soft_wrap=True)
        _forget_output()
        return DriftpinError.exit_code


def _answered(arguments: list[str]) -> int:
    """The command's own status, with a sentence on standard error for what went wrong on purpose."""
    try:
        status = int(app(arguments, standalone_mode=False) or 0)
    except DriftpinError as error:
        errors().print(f"[bold red]error:[/] {lines(error.message)}", soft_wrap=True)
        if error.remedy:
            errors().print(f"  {plain(error.remedy)}", soft_wrap=True)
        return error.exit_code
    except typer.TyperException as error:
        _show_usage(error, arguments)
        return DriftpinError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        status = ReplayInterruptedError.exit_code
    if status == ReplayInterruptedError.exit_code:
        errors().print(INTERRUPTED)
    return status


def _stop_like_an_interrupt() -> None:
    """A service manager's SIGTERM and a closed terminal's SIGHUP end a worker as Ctrl-C does, not as an orphan."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _forget_output() -> None:
    """What cannot be written must not be tried again when the interpreter leaves, which would change the status."""
    with suppress(OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _show_usage(error: typer.TyperException, arguments: Sequence[str]) -> None:
    """Usage and what is wrong with it, on standard error. Typer brings a click of its own; only `show` is common."""
    show = getattr(error, "show", None)
    if callable(show):
        show()
        if told := _option_help(error, arguments):
            errors().print(f"  {plain(told)}", soft_wrap=True)
    else:
        errors().print(f"[bold red]error:[/] {plain(error.format_message())}", soft_wrap=True)


def _option_help(error: typer.TyperException, arguments: Sequence[str]) -> str | None:
    """What an option wants that was given without its value, in the words of its own help; the error has none."""
    name, command = getattr(error, "option_name", None), typer.main.get_command(app)
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    option = next((one for one in command.params if name in one.opts), None)
    told = getattr(option, "help", None)
    return f"Give {name} a value: {told}." if told else None
