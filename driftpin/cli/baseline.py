"""`driftpin baseline bless|list|revert`."""

from __future__ import annotations

import getpass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftpin.cli.out import Format, FormatOption, console, emit, plain
from driftpin.cli.session import current
from driftpin.errors import NotFoundError

if TYPE_CHECKING:
    from driftpin.store import Store

app = typer.Typer(help="What replays are held against: blessed by a person, never by itself.", no_args_is_help=True)


class Only(StrEnum):
    """Which canaries a blessing takes."""

    NEW = "new"  # new and redefined ones join the current baseline


class Accept(StrEnum):
    """Ills that a person may accept."""

    ONE_TOKEN = "one_token"  # a canary whose output is one id repeated


WhoOption = Annotated[str | None, typer.Option(help="who decides; default: your login name")]


@app.command()
def bless(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="a target of the configuration")],
    replay: Annotated[str | None, typer.Option(help="bless this finished replay instead of making one")] = None,
    only: Annotated[Only | None, typer.Option(help="new: add new canaries to the current baseline")] = None,
    who: WhoOption = None,
    why: Annotated[str, typer.Option(help="kept with the baseline")] = "",
    accept: Annotated[list[Accept] | None, typer.Option(help="accept what would be refused")] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Replay the suite three times in every declared shape and make that the baseline."""
    from driftpin.cli.runs import reference_of  # noqa: PLC0415 - start-up time
    from driftpin.trace.health import Ill  # noqa: PLC0415
    from driftpin.workflow import shapes  # noqa: PLC0415
    from driftpin.workflow.bless import bless as make_baseline  # noqa: PLC0415
    from driftpin.workflow.bless import refuse_unfit  # noqa: PLC0415

    session = current(context)
    config = session.config()
    with session.store(config, migrate=True) as store:
        done = store.replays.find(replay) if replay else _run(context, store, target, only)
        if done.target != target:
            raise NotFoundError(f"Replay {done.id} is of target {done.target!r}, not {target!r}.")
        ills = [Ill(name) for name in accept or ()]
        refuse_unfit(store, done, ills)
        made = make_baseline(
            store,
            done,
            who or login(),
            why,
            only_new=only is Only.NEW,
            accept=ills,
            reference=reference_of(store, config.store_url(), done),
        )
    body = {"schema": shapes.BASELINES, "baselines": [shapes.baseline(made, current=True)]}
    emit(form, body, lambda c: c.print(f"blessed {plain(target)}@{made.number} from {made.replay_id}"))


def _run(context: typer.Context, store: Store, target: str, only: Only | None) -> Any:
    from driftpin.cli import runs  # noqa: PLC0415 - start-up time
    from driftpin.workflow.plans import bless_plan  # noqa: PLC0415

    session = current(context)
    config = session.config()
    order = session.order(config, target)
    chosen = _new_canaries(store, target, order.suite) if only else ()
    plan = bless_plan(order.operations, chosen)
    return runs.run_order(store, config.store_url(), order, plan, "bless", f"bless {target}")


def _new_canaries(store: Store, target: str, suite: Any) -> tuple[str, ...]:
    """New and redefined canaries, seen from what replays are held against now."""
    from driftpin.errors import BlessError  # noqa: PLC0415 - start-up time
    from driftpin.suite.revision import suite_changes  # noqa: PLC0415

    blessed = store.baselines.list(target)
    now = store.baselines.current(target, blessed[0].device_class) if blessed else None
    if now is None:
        raise BlessError("There is no baseline to add new canaries to.", remedy="Bless without `--only new` first.")
    changes = suite_changes(store.suites.get(now.suite_digest).suite, suite)
    if not (changes.new or changes.changed):
        raise BlessError("The suite has no canary that the baseline lacks.", remedy="Nothing needs blessing.")
    return (*changes.new, *changes.changed)


@app.command(name="list")
def list_(
    context: typer.Context,
    target: Annotated[str | None, typer.Argument(help="of this target only")] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """List baselines, newest first."""
    from driftpin.cli import screens  # noqa: PLC0415 - start-up time
    from driftpin.workflow import shapes  # noqa: PLC0415

    session = current(context)
    with session.store(session.config()) as store:
        blessed = store.baselines.list(target)
        now = {store.baselines.current(b.target, b.device_class) for b in blessed}
        rows = [shapes.baseline(b, current=b in now) for b in blessed]
    emit(form, {"schema": shapes.BASELINES, "baselines": rows}, lambda c: screens.baselines(c, rows))


@app.command()
def revert(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="the target")],
    to: Annotated[int | None, typer.Option(help="this baseline's number; default: the one before")] = None,
    device_class: Annotated[str | None, typer.Option(help="where there are several")] = None,
    who: WhoOption = None,
    why: Annotated[str, typer.Option(help="kept with the change")] = "",
) -> None:
    """Make an earlier baseline current again."""
    session = current(context)
    with session.store(session.config()) as store:
        blessed = [b for b in store.baselines.list(target) if device_class in (None, b.device_class)]
        classes = sorted({b.device_class for b in blessed})
        if len(classes) != 1:
            found = ", ".join(classes) or "none"
            raise NotFoundError(f"{target} has baselines for: {found}.", remedy="Name one with --device-class.")
        wanted = next((b.id for b in blessed if b.number == to), None)
        if to is not None and wanted is None:
            raise NotFoundError(f"{target} has no baseline {to}.", remedy=f"`driftpin baseline list {target}`.")
        now = store.baselines.revert(target, classes[0], who or login(), why, wanted)
    console().print(f"{plain(target)} is now held against {'nothing' if now is None else f'{target}@{now.number}'}")


def login() -> str:
    """The name of whoever runs this; the user's number where it has no name."""
    import os  # noqa: PLC0415 - rarely needed

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
