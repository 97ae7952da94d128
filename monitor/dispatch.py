"""Running what was ordered. Fleet and embedded differ only here: the rest of the monitor sees a `Dispatcher`.

The embedded one takes this host's queue itself, one replay at a time, each in a fresh child process.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from driftpin.errors import LateAttemptError
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.workflow.launch import launch
from driftpin.workflow.purpose import CONFIRM, REFERENCE
from monitor.schedule import PURPOSE
from monitor.wanted import Wanted

QUEUE_LIMIT = 1000
SILENCE = timedelta(minutes=10)  # no heartbeat for so long beyond the target's limit: the attempt is dead
DEFAULT_LIMIT = 3600.0  # seconds, for replays that have no time limit: people's own
REPEATS = (CONFIRM, REFERENCE)  # what a monitor runs about a replay
OURS = (PURPOSE, *REPEATS)

log = structlog.get_logger()


class Dispatcher(Protocol):
    """What the monitor asks of whatever runs replays."""

    def reap(self, starting: bool = False) -> Sequence[Replay]:
        """End attempts whose worker is dead, as failed, and return them; `starting` when nothing runs here yet."""

    def work(self) -> Replay | None:
        """Run the ordered replay that waits longest and return it as it ended; None when nothing can be run now."""


@dataclass(frozen=True, kw_only=True)
class EmbeddedDispatcher:
    """Runs replays on this host, in the calling thread."""

    store: Store
    url: str
    wanted: Mapping[str, Wanted]  # by target
    stop: threading.Event
    now: Callable[[], datetime]
    host: str = field(default_factory=socket.gethostname)

    def work(self) -> Replay | None:
        """One replay; those whose device is busy wait or are skipped, as their target says."""
        for replay in self._queue():
            if self.stop.is_set():
                return None
            wanted = self.wanted[replay.target]
            other = self._busy(replay)
            if other is None:
                return self._run(replay, wanted)
            if wanted.when_busy == "skip":
                self._end(replay, ReplayStatus.SKIPPED, f"busy: replay {other.id} has {other.device}")
        return None

    def _queue(self) -> list[Replay]:
        """Scheduled replays of this host, oldest first, one per series: what waited too long is not made up for twice.

        A person's own replay is run by whoever ordered it.
        """
        waiting = self.store.replays.list(status=ReplayStatus.QUEUED, limit=QUEUE_LIMIT)
        ours = [r for r in reversed(waiting) if self._ours(r) and r.target in self.wanted]
        newest = {r.series: r for r in ours}
        for old in ours:
            if newest[old.series] is not old:
                self._end(old, ReplayStatus.SKIPPED, f"not run before the next one, {newest[old.series].id}, was due")
        return list(newest.values())

    def _ours(self, replay: Replay) -> bool:
        return replay.host == self.host and replay.purpose == PURPOSE

    def _busy(self, replay: Replay) -> Replay | None:
        running = self.store.replays.list(status=ReplayStatus.RUNNING, limit=QUEUE_LIMIT)
        return next((r for r in running if (r.host, r.device) == (replay.host, replay.device)), None)

    def _run(self, replay: Replay, wanted: Wanted) -> Replay:
        try:
            done = launch(self.store, self.url, replay, _unheard, wanted.limit_seconds, self.stop)
        except OSError as error:
            self._end(replay, ReplayStatus.FAILED, f"no worker could be started: {error.strerror}")
            done = self.store.replays.get(replay.id)
        why = f": {wanted.tellable(done.reason)}" if done.reason else ""
        say = log.info if done.status is ReplayStatus.FINISHED else log.warning
        say(
            f"Replay {done.id} of {done.target} {done.status.value}{why}.",
            action=f"replay_{done.status.value}",
            replay=done.id,
            target=done.target,
        )
        return done

    def reap(self, starting: bool = False) -> list[Replay]:
        """Silent attempts anywhere; at the start also every scheduled one here, since its monitor is gone."""
        dead = [r for r in self.store.replays.stale(self.now() - SILENCE) if self._silent(r)]
        if starting:
            running = self.store.replays.list(status=ReplayStatus.RUNNING, limit=QUEUE_LIMIT)
            orphans = [r for r in running if r.host == self.host and r.purpose in OURS]
            dead = list({r.id: r for r in (*dead, *orphans)}.values())
            self._forget()
        return [r for r in dead if self._end(r, ReplayStatus.FAILED, "its worker is gone: no sign of life")]

    def _silent(self, replay: Replay) -> bool:
        """Loading and a long canary give no heartbeat, so that the time limit is granted first."""
        wanted = self.wanted.get(replay.target)
        limited = wanted is not None and replay.purpose in OURS
        limit = timedelta(seconds=wanted.limit_seconds if wanted and limited else DEFAULT_LIMIT)
        return replay.heartbeat_at is None or replay.heartbeat_at < self.now() - SILENCE - limit

    def _forget(self) -> None:
        """Replays that nobody will run: repeats of a monitor that ended, and those of targets no longer watched."""
        for replay in self.store.replays.list(status=ReplayStatus.QUEUED, limit=QUEUE_LIMIT):
            repeat = replay.host == self.host and replay.purpose in REPEATS
            if repeat or (self._ours(replay) and replay.target not in self.wanted):
                self._end(replay, ReplayStatus.SKIPPED, "the monitor that ordered it ended")

    def _end(self, replay: Replay, status: ReplayStatus, reason: str) -> bool:
        """False when it ended by itself meanwhile."""
        try:
            self.store.replays.stop(replay.id, replay.attempt, status, reason)
        except LateAttemptError:
            return False
        log.warning(
            f"Replay {replay.id} of {replay.target} {status.value}: {reason}.",
            action=f"replay_{status.value}",
            replay=replay.id,
            target=replay.target,
        )
        return True


def _unheard(event: Mapping[str, Any]) -> None:
    """A worker's progress interests nobody here; what it did is in the store."""
