"""Starting a worker in a fresh process and listening to it. Knows the worker by its command line only.

A fresh process is part of the measurement: seeds, variables and CUDA must be set before anything runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from driftpin.errors import LateAttemptError
from driftpin.settings.process import child_environment
from driftpin.store import Store
from driftpin.store.replay import ENDED, Replay, ReplayStatus

WORKER = "runner.worker"  # the module that runs a replay
STORE_VARIABLE = "DRIFTPIN_WORKER_STORE"
GRACE_SECONDS = 20.0  # between asking a worker to stop and killing it
POLL_SECONDS = 0.1  # between two looks at `stop`
KEPT_LINES = 12  # of a worker's stderr, for the reason of a failure

Listener = Callable[[Mapping[str, Any]], None]


def launch(
    store: Store,
    url: str,
    replay: Replay,
    listener: Listener,
    limit_seconds: float | None = None,
    stop: threading.Event | None = None,
    worker: str = WORKER,
) -> Replay:
    """Run a queued replay in a child process and return it as it ended.

    KeyboardInterrupt or `stop` interrupts the child first. One that takes longer than `limit_seconds` has failed.
    `worker` is the module that the child runs, with the replay's id as its argument.
    """
    recipe = store.targets.get(replay.revision_id).recipe
    environment = dict(os.environ) | child_environment(recipe) | {STORE_VARIABLE: url}
    command = [sys.executable, "-m", worker, replay.id]
    # A session of its own: an interrupt of the terminal reaches the child through us, once.
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as child:
        watch = _Watch(child, listener, limit_seconds, stop or threading.Event())
        watch.before_time_out = lambda: _end(store, replay, ReplayStatus.FAILED, watch.reason())
        try:
            watch.listen()
        except KeyboardInterrupt:
            _stop(child)
            _end(store, replay, ReplayStatus.INTERRUPTED, "interrupted in mid-replay")
            raise
    status = ReplayStatus.INTERRUPTED if watch.stopped else ReplayStatus.FAILED
    _end(store, replay, status, watch.reason())
    return store.replays.get(replay.id)


class _Watch:
    """Reads a worker's lines and keeps the last of what it complained about."""

    def __init__(
        self, child: subprocess.Popen[str], listener: Listener, limit_seconds: float | None, stop: threading.Event
    ) -> None:
        self.child, self.listener, self.stop = child, listener, stop
        self.complaints: list[str] = []
        self.limit_seconds, self.timed_out, self.stopped = limit_seconds, False, False
        # The worker would seal itself as interrupted, and the reason would be lost: the time limit seals it first.
        self.before_time_out: Callable[[], None] = lambda: None

    def listen(self) -> None:
        """Until the worker ends."""
        drain = threading.Thread(target=self._drain, daemon=True)
        drain.start()
        timer = threading.Timer(self.limit_seconds, self._time_out) if self.limit_seconds else None
        if timer:
            timer.start()
        ended = threading.Event()
        threading.Thread(target=self._heed, args=(ended,), daemon=True).start()
        try:
            for line in self.child.stdout or ():
                self._hear(line)
            self.child.wait()
        finally:
            ended.set()
            if timer:
                timer.cancel()
        drain.join()

    def _hear(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            self.complaints.append(line.rstrip())  # a library printed something
            return
        if isinstance(event, dict) and "event" in event:
            self.listener(event)

    def _drain(self) -> None:
        for line in self.child.stderr or ():
            self.complaints = [*self.complaints[-(KEPT_LINES - 1) :], line.rstrip()]

    def _heed(self, ended: threading.Event) -> None:
        """Interrupt the worker once `stop` is set."""
        while not ended.wait(POLL_SECONDS):
            if self.stop.is_set():
                self.stopped = True
                _stop(self.child)
                return

    def _time_out(self) -> None:
        self.timed_out = True
        self.before_time_out()
        _stop(self.child)

    def reason(self) -> str:
        """Why a worker that left its replay open ended."""
        if self.stopped:
            return "interrupted in mid-replay"
        if self.timed_out:
            return f"the worker was stopped after its time limit of {self.limit_seconds:g} s"
        code = self.child.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        last = f"; it last said: {' / '.join(self.complaints[-3:])}" if self.complaints else ""
        return f"the worker ended with {how} before the replay did{last}"


def _stop(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


def _end(store: Store, replay: Replay, status: ReplayStatus, reason: str) -> None:
    """Seal a replay that its worker left open; one that has ended is left alone."""
    now = store.replays.get(replay.id)
    if now.status in ENDED:
        return
    try:
        store.replays.stop(replay.id, now.attempt, status, reason)
    except LateAttemptError:
        return  # it ended between the two statements
