"""`run`: the monitor as one process. It leads or waits, ticks, dispatches, judges and delivers until it is stopped.

Knows how the parts are put together; what each does is in its own file.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from driftpin.errors import DriftpinError
from driftpin.settings.config import Config
from driftpin.store import Store
from driftpin.store.leadership import Leadership
from driftpin.store.replay import ReplayStatus
from driftpin.store.store import utc_now
from monitor import logs
from monitor.channels import channels_of
from monitor.desk import Desk
from monitor.dispatch import Dispatcher, EmbeddedDispatcher
from monitor.evaluate import Evaluator
from monitor.judged import Judged
from monitor.outbox import Courier, Round, couriers
from monitor.schedule import Ticks, clock
from monitor.wanted import Wanted, wanted_of
from monitor.watch import Watch

NOT_LEADING = 3  # exit status of `once` while another monitor leads: nothing was looked at
JOIN_SECONDS = 20.0  # for couriers in the middle of an attempt

log = structlog.get_logger()


def run(config: Config, url: str, *, stop: threading.Event, once: bool = False) -> int:
    """Watch every target that has a schedule until `stop`, SIGTERM or SIGINT; with `once`, do what is due and return.

    Returns an exit status: 0, or 3 when `once` finds another monitor leading. Raises `ConfigError`, `SuiteError`, and
    `StoreError` for a store that cannot be opened. A replay that runs at the stop is interrupted and made up for later.
    """
    logs.configure()
    wanted = wanted_of(config)
    with _signals(stop), Store.open(url, migrate=True) as store:
        monitor = Monitor.of(config, store, url, wanted, stop)
        leadership = store.leadership()
        try:
            if once:
                return monitor.once(leadership)
            monitor.forever(leadership, config.tables.monitor.tick_seconds)
            return 0
        finally:
            leadership.release()
            log.info("The monitor has ended.", action="stopped")


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set `stop`; only a main thread can hear them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: Any) -> None:
        stop.set()

    before = {number: signal.signal(number, heard) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """The parts of one monitor."""

    store: Store
    wanted: Sequence[Wanted]
    stop: threading.Event
    ticks: Ticks
    dispatcher: Dispatcher
    evaluator: Evaluator
    watch: Watch
    couriers: Sequence[Courier]

    @classmethod
    def of(
        cls,
        config: Config,
        store: Store,
        url: str,
        wanted: Sequence[Wanted],
        stop: threading.Event,
        now: Callable[[], datetime] = utc_now,
    ) -> Monitor:
        """Embedded: everything on this machine."""
        desk = Desk(store=store, now=now)
        by_target = {one.target: one for one in wanted}
        return cls(
            store=store,
            wanted=wanted,
            stop=stop,
            ticks=Ticks(store=store, now=now),
            dispatcher=EmbeddedDispatcher(store=store, url=url, wanted=by_target, stop=stop, now=now),
            evaluator=Evaluator(store=store, url=url, desk=desk, judged=Judged(store), stop=stop),
            watch=Watch(store=store, desk=desk, now=now),
            couriers=couriers(store, channels_of(config), now, random.random),
        )

    def once(self, leadership: Leadership) -> int:
        """What is due now, and one attempt for every message."""
        if not leadership.acquire():
            log.warning("Another monitor leads on this store.", action="not_leading", store=self.store.url)
            return NOT_LEADING
        self.start()
        self.pass_through()
        for courier in self.couriers:
            while courier.deliver_due():
                pass  # a sent one may have freed the next of its incident
        return 0

    def forever(self, leadership: Leadership, pause_seconds: float) -> None:
        """Lead whenever nobody else does."""
        while self._wait_for_lead(leadership, pause_seconds):
            log.info("The monitor leads.", action="leading", store=self.store.url, targets=len(self.wanted))
            self._lead(leadership, pause_seconds)

    def _wait_for_lead(self, leadership: Leadership, pause_seconds: float) -> bool:
        said = False
        while not self.stop.is_set():
            try:
                if leadership.acquire():
                    return True
                if not said:
                    log.info("Another monitor leads; this one waits.", action="waiting", store=self.store.url)
                    said = True
            except DriftpinError as error:
                log.error(f"The lead cannot be asked for: {error}", action="lead_failed")
            self.stop.wait(pause_seconds)
        return False

    def _lead(self, leadership: Leadership, pause_seconds: float) -> None:
        """Until `stop`, or until the lead is lost."""
        over = threading.Event()
        rounds = [Round(courier, over) for courier in self.couriers]
        scheduler = clock(self.ticks, self.wanted)
        try:
            self._heed(self.start)
            scheduler.start()
            for one in rounds:
                one.start()
            while not self.stop.is_set() and leadership.still_held():
                self._heed(self.pass_through)
                self.stop.wait(pause_seconds)
            if not self.stop.is_set():
                log.warning("The lead was lost.", action="lead_lost")
        finally:
            over.set()
            if scheduler.running:
                scheduler.shutdown(wait=True)
            for one in rounds:
                if one.is_alive():
                    one.join(JOIN_SECONDS)
            leadership.release()

    def _heed(self, step: Callable[[], None]) -> None:
        """A store that is away for a while must not end the monitor; a bug does, loudly."""
        try:
            step()
        except DriftpinError as error:
            log.error(f"A pass broke off and is repeated: {error}", action="pass_failed")

    def start(self) -> None:
        """Make up for what was missed: ticks while nobody led, and replays that were cut off."""
        self._reap(starting=True)
        for one in self.wanted:
            last = next(iter(self.store.replays.list(one.target, series=one.series, limit=1)), None)
            ordered = self.ticks.tick(one)
            if ordered is None and last is not None and last.status is ReplayStatus.INTERRUPTED:
                self.ticks.again(one)

    def pass_through(self) -> None:
        """Run and judge until nothing waits, then look at what did not come."""
        self._reap()
        self._judge()
        while not self.stop.is_set() and self.dispatcher.work() is not None:
            self._judge()
        for one in self.wanted:
            self.watch.accepted(one)
            self.watch.overdue(one)

    def _judge(self) -> None:
        for one in self.wanted:
            self.evaluator.judge_ended(one)

    def _reap(self, starting: bool = False) -> None:
        """A dead attempt is not the target's fault: nobody is told, and another replay takes its place."""
        watched = {one.series: one for one in self.wanted}
        for replay in self.dispatcher.reap(starting):
            if one := watched.get(replay.series or ""):
                self.evaluator.judged.move(replay)
                if self.ticks.tick(one) is None:
                    self.ticks.again(one)
