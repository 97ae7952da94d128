"""The clock: APScheduler's ticks order replays, and do nothing else. Knows nothing of how a replay is run.

Schedules are rebuilt in memory at every start; nothing of APScheduler is stored. A tick that was missed, for whatever
reason, is made up for once; a tick that comes twice finds its due time taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-untyped]  # no stubs

from driftpin.errors import DriftpinError
from driftpin.store import Store
from driftpin.store.replay import Replay
from driftpin.workflow.order import place
from monitor.wanted import Wanted

PURPOSE = "scheduled"

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Ticks:
    """Orders what is due."""

    store: Store
    now: Callable[[], datetime]

    def tick(self, wanted: Wanted) -> Replay | None:
        """Order the replay of the newest due time, unless it was ordered before."""
        due = wanted.schedule.last(self.now())
        handed_out = self.store.schedules.last_due(wanted.series)
        if due is None or (handed_out is not None and handed_out >= due):
            return None
        ordered = self.order(wanted, due)
        self.store.schedules.set_due(wanted.series, due)  # after the order: a crash in between orders again, in vain
        return ordered

    def again(self, wanted: Wanted) -> Replay | None:
        """Order one out of turn, instead of one that came to nothing."""
        return self.order(wanted, self.now())

    def order(self, wanted: Wanted, due: datetime) -> Replay | None:
        """Order for one due time; None when the series has one for it."""
        ordered = place(self.store, wanted.order, wanted.plan, PURPOSE, due=due, series=wanted.series)
        if ordered is not None:
            log.info(
                f"A replay of {wanted.target} was ordered.",
                action="ordered",
                replay=ordered.id,
                target=wanted.target,
                due=due.isoformat(),
            )
        return ordered

    def heed(self, wanted: Wanted) -> None:
        """A tick whose failure is said, not raised: the next one tries again."""
        try:
            self.tick(wanted)
        except DriftpinError as error:
            log.error(f"A replay of {wanted.target} could not be ordered: {error}", action="order_failed")


def clock(ticks: Ticks, wanted: Sequence[Wanted]) -> BackgroundScheduler:
    """A scheduler that is not started yet, with one job per target."""
    scheduler = BackgroundScheduler(
        timezone=UTC,
        # The default grace of one second would drop a tick whenever the machine is busy.
        job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
    )
    for one in wanted:
        scheduler.add_job(ticks.heed, one.schedule.trigger(), args=(one,), id=one.series, replace_existing=True)
    return scheduler
