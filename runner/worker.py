"""The worker: runs one replay that the store wants, in this process. Knows no baseline's opinion and no alert.

`python -m runner.worker REPLAY_ID` reads everything else from the store named by DRIFTPIN_WORKER_STORE and writes one
JSON line per step to standard output, for whoever started it. Everything recorded is committed canary by canary.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from driftpin.errors import DriftpinError, ReplayInterruptedError, StoreError
from driftpin.store import Store
from driftpin.store.replay import ReplayStatus
from driftpin.workflow.launch import STORE_VARIABLE
from runner.execution import Execution, Progress, reason_of

CRASHED = 1


def run_replay(store: Store, replay_id: str, progress: Progress | None = None) -> ReplayStatus:
    """Claim and execute a queued replay; returns how it ended. Whatever happens, what was recorded is sealed."""
    attempt = store.replays.claim(replay_id)
    if attempt is None:
        raise StoreError(f"Replay {replay_id} is not waiting to be run.", remedy="Order a new one.")
    try:
        Execution(store, store.replays.get(replay_id), attempt, progress or _silent).run()
    except KeyboardInterrupt:
        store.replays.stop(replay_id, attempt, ReplayStatus.INTERRUPTED, "interrupted in mid-replay")
        return ReplayStatus.INTERRUPTED
    except Exception as error:
        store.replays.stop(replay_id, attempt, ReplayStatus.FAILED, reason_of(error))
        raise
    return ReplayStatus.FINISHED


def _silent(event: str, **facts: Any) -> None:
    """Nobody listens."""


def _print_line(event: str, **facts: Any) -> None:
    with suppress(BrokenPipeError):  # whoever listened is gone; the store is the record, and the replay goes on
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def main(argv: list[str]) -> int:
    """Exit status 0: finished; 130: interrupted; 2: a reason is in the store; 1: a crash, its trace on stderr."""
    signal.signal(signal.SIGTERM, _interrupt)
    replay_id, url = argv[0], os.environ.pop(STORE_VARIABLE)
    report: Callable[..., None] = _print_line
    try:
        with Store.open(url) as store:
            status = run_replay(store, replay_id, report)
    except DriftpinError as error:
        report("failed", reason=str(error))
        return error.exit_code
    return ReplayInterruptedError.exit_code if status is ReplayStatus.INTERRUPTED else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
