"""`driftpin monitor`, `driftpin doctor` and `driftpin demo`."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from driftpin.cli.out import Format, FormatOption, emit
from driftpin.cli.session import current


def monitor(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="do what is due now, then stop")] = False,
) -> int:
    """Replay every target on its schedule, compare, confirm, and raise the alarm."""
    from monitor.service import run  # noqa: PLC0415 - start-up time

    config = current(context).config()
    return run(config, config.store_url(), stop=threading.Event(), once=once)


def doctor(context: typer.Context, form: FormatOption = Format.TEXT) -> int:
    """Check this installation: run the whole pipeline on the fake engine, and look for what targets need."""
    from driftpin.cli import checkup  # noqa: PLC0415 - start-up time

    findings = checkup.findings(current(context))
    body = checkup.shape(findings)
    emit(form, body, lambda c: checkup.draw(c, findings))
    return int(body["exit_code"])


def demo(
    folder: Annotated[str | None, typer.Option(help="work here instead of a temporary folder")] = None,
) -> int:
    """Bless a real small model, then change one real thing after another and see what is said."""
    from driftpin.cli import demonstration  # noqa: PLC0415 - start-up time

    return demonstration.run(folder)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(monitor)
    app.command()(doctor)
    app.command()(demo)
