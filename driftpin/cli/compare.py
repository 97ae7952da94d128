"""`driftpin compare` and `driftpin show`."""

from __future__ import annotations

from typing import Annotated

import typer

from driftpin.cli.out import Format, FormatOption, emit
from driftpin.cli.session import current, shows_text

REFERENCE = "TARGET@baseline, TARGET@last, TARGET@NUMBER (a baseline) or a replay id such as r-9f31"


def compare(
    context: typer.Context,
    baseline: Annotated[str, typer.Argument(help=REFERENCE)],
    candidate: Annotated[str, typer.Argument(help="the same")],
    strict: Annotated[bool, typer.Option("--strict", help="numeric movement counts as drift")] = False,
    form: FormatOption = Format.TEXT,
) -> int:
    """Compare two references canary by canary, and judge."""
    from driftpin.cli import screens  # noqa: PLC0415 - start-up time
    from driftpin.settings.policy import Policy  # noqa: PLC0415
    from driftpin.verdict.kind import exit_code  # noqa: PLC0415
    from driftpin.workflow import shapes  # noqa: PLC0415
    from driftpin.workflow.assess import assess  # noqa: PLC0415
    from driftpin.workflow.references import resolve  # noqa: PLC0415

    session = current(context)
    config = session.config()
    with session.store(config) as store:
        old, new = resolve(store, baseline), resolve(store, candidate)
        operations = store.targets.get(new.replay.revision_id).operations
        found = assess(store, old, new, Policy.from_json(operations["policy"]))
        text = shows_text(config, store, old.replay, new.replay)
    body = shapes.assessment(found, strict=strict, text=text)
    emit(form, body, lambda c: screens.assessment(c, found, body, new.replay))
    return exit_code(found.verdict.kind, strict=strict, comparing=True)


def show(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(help=REFERENCE)],
    canary: Annotated[str | None, typer.Option(help="this canary's text and numbers")] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show what a replay recorded."""
    from driftpin.cli import screens  # noqa: PLC0415 - start-up time
    from driftpin.workflow.contents import contents  # noqa: PLC0415
    from driftpin.workflow.references import resolve  # noqa: PLC0415

    session = current(context)
    config = session.config()
    with session.store(config) as store:
        found = resolve(store, reference)
        body = contents(store, found, canary, text=shows_text(config, store, found.replay))
    emit(form, body, lambda c: screens.contents(c, body))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(compare)
    app.command()(show)
