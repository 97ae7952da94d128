"""`driftpin env show|diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from driftpin.cli.compare import REFERENCE
from driftpin.cli.out import Format, FormatOption, emit
from driftpin.cli.session import current
from driftpin.errors import NotFoundError

group = typer.Typer(help="What the numbers were computed on.", no_args_is_help=True)


@group.command()
def show(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(help=REFERENCE)],
    form: FormatOption = Format.TEXT,
) -> None:
    """The environment that a replay captured: model, stack, behaviour and context."""
    from driftpin.cli import screens  # noqa: PLC0415 - start-up time
    from driftpin.workflow import shapes  # noqa: PLC0415

    body = shapes.environment(_environments(context, reference)[0])
    emit(form, body, lambda c: screens.environment(c, body))


@group.command()
def diff(
    context: typer.Context,
    before: Annotated[str, typer.Argument(help=REFERENCE)],
    after: Annotated[str, typer.Argument(help="the same")],
    form: FormatOption = Format.TEXT,
) -> None:
    """Facts that differ between two environments, likeliest to change numbers first."""
    from driftpin.cli import screens  # noqa: PLC0415 - start-up time
    from driftpin.environment.difference import difference, equalities  # noqa: PLC0415
    from driftpin.workflow import shapes  # noqa: PLC0415

    old, new = _environments(context, before, after)
    body = {
        "schema": shapes.DIFFERENCE,
        "equality": {section.value: word.value for section, word in equalities(old, new).items()},
        "facts": shapes.differences(difference(old, new)),
    }
    emit(form, body, lambda c: screens.environment_difference(c, body))


def _environments(context: typer.Context, *references: str):  # type: ignore[no-untyped-def]
    from driftpin.workflow.references import resolve  # noqa: PLC0415
    from driftpin.workflow.sides import environment  # noqa: PLC0415 - start-up time

    session = current(context)
    with session.store(session.config()) as store:
        replays = [resolve(store, reference).replay for reference in references]
        for row in replays:
            if row.environment is None:
                raise NotFoundError(f"Replay {row.id} ended before its environment was captured: {row.reason}.")
        return [environment(store, row) for row in replays]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(group, name="env")
