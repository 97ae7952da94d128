"""Running a replay from the command line: order, progress bar, result. Knows no command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from driftpin.cli.out import errors, plain
from driftpin.errors import ReplayFailedError
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.workflow.assess import assess_replay
from driftpin.workflow.bless import SEEDS
from driftpin.workflow.launch import Listener, launch
from driftpin.workflow.order import Order, place
from driftpin.workflow.refer import Referred, refer, run_beside, worth_referring

if TYPE_CHECKING:
    from driftpin.settings.policy import Policy
    from driftpin.store import Store
    from driftpin.trace.plan import Plan
    from driftpin.workflow.assess import Assessment


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


def reference_of(store: Store, url: str, blessing: Replay) -> Referred:
    """The reference arm's scores of a blessing's own tokens, with its own yardstick, under a progress bar."""
    with progress(f"reference arm of {blessing.target}") as listener:
        return run_beside(
            store, blessing, blessing.trace_set or "", lambda queued: launch(store, url, queued, listener), SEEDS
        )


def referred(store: Store, url: str, found: Assessment, policy: Policy) -> Assessment:
    """The same opinion with the reference arm's word, where the design asks for it; it runs here if need be."""
    if not worth_referring(found):
        return found
    replay = found.candidate.replay
    with progress(f"reference arm of {replay.target}") as listener:
        refer(store, url, replay, listener)
    return assess_replay(store, store.replays.get(replay.id), policy, found.reproduced)


@contextmanager
def progress(title: str) -> Iterator[Listener]:
    """A listener that draws the worker's steps on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    told = errors()
    with Progress(*columns, console=told, transient=True, disable=not told.is_terminal) as bar:
        task = bar.add_task(f"{plain(title)}: loading", total=None)

        def listener(event: Mapping[str, Any]) -> None:
            if event["event"] == "planned":
                bar.update(task, total=event["executions"], description=plain(title))
            elif event["event"] == "block":
                through = event["done"] < event["of"]
                said = f", block {event['done'] + 1} of {event['of']}" if through else ""
                bar.update(task, description=f"{plain(title)}{said}")
            elif event["event"] == "done":
                bar.advance(task)

        yield listener
