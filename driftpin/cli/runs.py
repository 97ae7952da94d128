"""Running a replay from the command line: order, progress bar, result. Knows no command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from driftpin.cli.out import errors, plain
from driftpin.errors import ReplayFailedError
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.workflow.launch import Listener, launch
from driftpin.workflow.order import Order, place

if TYPE_CHECKING:
    from driftpin.store import Store
    from driftpin.trace.plan import Plan


def run_order(store: Store, url: str, order: Order, plan: Plan, purpose: str, title: str) -> Replay:
    """Order a replay and run it here under a progress bar; raises `ReplayFailedError` with its reason."""
    queued = place(store, order, plan, purpose)
    if queued is None:
        raise ReplayFailedError("The replay could not be ordered.")
    with progress(title) as listener:
        done = launch(store, url, queued, listener)
    if done.status is not ReplayStatus.FINISHED:
        kept = "" if done.trace_set is None else f" What it recorded is kept: `driftpin show {done.id}`."
        raise ReplayFailedError(f"Replay {done.id} {done.status}: {done.reason}", remedy=kept.strip() or None)
    return done


@contextmanager
def progress(title: str) -> Iterator[Listener]:
    """A listener that draws the worker's steps on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors(), transient=True) as bar:
        task = bar.add_task(f"{plain(title)}: loading", total=None)

        def listener(event: Mapping[str, Any]) -> None:
            if event["event"] == "planned":
                bar.update(task, total=event["executions"], description=plain(title))
            elif event["event"] == "done":
                bar.advance(task)

        yield listener
