"""`driftpin replay` and `driftpin replays`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from driftpin.cli.out import Format, FormatOption, emit, errors, plain
from driftpin.cli.session import current

if TYPE_CHECKING:
    from driftpin.workflow.assess import Assessment


def replay(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="a target of the configuration")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be executed, and stop")] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="repeat a change in fresh processes")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="numeric movement counts as drift")] = False,
    reference: Annotated[bool, typer.Option(help="run the float32 reference arm where something moved")] = True,
    form: FormatOption = Format.TEXT,
) -> int:
    """Run the target's suite once, compare it with its baseline, and say what changed."""
    from driftpin.cli import runs, screens  # noqa: PLC0415 - start-up time
    from driftpin.settings.policy import Policy  # noqa: PLC0415
    from driftpin.verdict.kind import exit_code  # noqa: PLC0415
    from driftpin.workflow import shapes  # noqa: PLC0415
    from driftpin.workflow.assess import assess_replay  # noqa: PLC0415
    from driftpin.workflow.plans import dry, replay_plan  # noqa: PLC0415

    session = current(context)
    config = session.config()
    order = session.order(config, target)
    plan = replay_plan(order.operations)
    with session.store(config, migrate=True) as store:
        if dry_run:
            body = dry(store, order, plan)
            emit(form, body, lambda c: screens.dry_run(c, body))
            return 0
        url = config.store_url()
        done = runs.run_order(store, url, order, plan, "manual", f"replay {target}")
        policy = Policy.from_json(order.operations["policy"])
        found = assess_replay(store, done, policy)
        if confirm:
            found = _confirmed(store, url, order, found, policy)
        if reference:
            found = runs.referred(store, url, found, policy)
        shown = order.operations["text"] == "show"
        body = shapes.replay_result(found, done, strict=strict, text=shown)
        emit(form, body, lambda c: screens.assessment(c, found, body, done))
        return exit_code(found.verdict.kind, strict=strict)


def _confirmed(store, url, order, found: Assessment, policy) -> Assessment:  # type: ignore[no-untyped-def]
    """The same opinion once more, after the change was repeated."""
    from driftpin.cli import runs  # noqa: PLC0415 - start-up time
    from driftpin.workflow.assess import assess_replay  # noqa: PLC0415
    from driftpin.workflow.confirm import confirm as repeat  # noqa: PLC0415
    from driftpin.workflow.confirm import worth_confirming  # noqa: PLC0415

    if not worth_confirming(found.verdict):
        return found
    with runs.progress("confirming") as listener:
        confirmation = repeat(store, url, found.candidate.replay, policy.confirm, listener)
    if confirmation.reproduced is None:
        why = confirmation.reason or "no repeat ran"
        errors().print(f"[yellow]The change could not be confirmed:[/] {plain(why)}", soft_wrap=True)
        return found
    return assess_replay(store, found.candidate.replay, policy, confirmation.reproduced)


def replays(
    context: typer.Context,
    target: Annotated[str | None, typer.Argument(help="of this target only")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="newest so many")] = 20,
    form: FormatOption = Format.TEXT,
) -> None:
    """List replays, newest first."""
    from driftpin.cli import screens  # noqa: PLC0415 - start-up time
    from driftpin.workflow import shapes  # noqa: PLC0415

    session = current(context)
    with session.store(session.config()) as store:
        rows = [shapes.replay(row) for row in store.replays.list(target, limit)]
    emit(form, {"schema": shapes.REPLAYS, "replays": rows}, lambda c: screens.replays(c, rows))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(replay)
    app.command()(replays)
