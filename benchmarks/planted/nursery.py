"""Warm workers: one process loads the libraries once, and each replay runs in a forked child of it.

Importing torch and transformers takes longer than a tiny model's whole replay. A fork keeps what matters of a fresh
process (nothing has been computed in it, no thread was started); what acts while libraries load does not, so a change
of variables or threads is never run here. `python -m benchmarks.planted.nursery` is the process itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from benchmarks.planted.change import VARIABLE
from driftpin.settings.process import child_environment
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import ENDED, Replay, ReplayStatus
from driftpin.workflow.launch import STORE_VARIABLE

PATIENCE = 900  # seconds for one replay


class Nursery:
    """The client's side: started at first use, closed by the caller."""

    def __init__(self, recipe: Recipe) -> None:
        self._environment = dict(os.environ) | child_environment(recipe)
        self._process: subprocess.Popen[str] | None = None

    def run(self, store: Store, url: str, replay: Replay, patch: str | None = None) -> Replay:
        """Run a queued replay and return it as it ended."""
        answer = self._ask({"replay": replay.id, "url": url, "patch": patch})
        now = store.replays.get(replay.id)
        if now.status not in ENDED:
            reason = f"the worker ended with exit status {answer['code']} before the replay did"
            store.replays.stop(replay.id, now.attempt, ReplayStatus.FAILED, reason)
        return store.replays.get(replay.id)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
        self._process = None

    def _ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchmarks.planted.nursery"]
        pipe = subprocess.PIPE
        # A session of its own: an interrupt of the terminal ends the run, and the replay under way ends by itself.
        return subprocess.Popen(
            command, env=self._environment, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )


def serve() -> None:
    """One job per line of standard input, one answer per line of standard output."""
    _load()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _work(json.loads(line))
        status = os.waitpid(child, 0)[1]
        answer = json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n"
        os.write(sys.stdout.fileno(), answer.encode())


def _load() -> None:
    """Everything that a worker imports, and nothing that computes."""
    import transformers.models.llama.modeling_llama  # noqa: F401, PLC0415

    import benchmarks.planted.worker  # noqa: F401, PLC0415
    import runner.worker  # noqa: F401, PLC0415


def _work(job: Mapping[str, Any]) -> None:
    """In the child; never returns. An exit without clean-up leaves the parent's buffers alone."""
    from benchmarks.planted.worker import install  # noqa: PLC0415
    from runner import worker  # noqa: PLC0415

    code = worker.CRASHED
    try:
        signal.alarm(PATIENCE)
        os.dup2(os.open(os.devnull, os.O_RDWR), sys.stdout.fileno())
        os.environ[STORE_VARIABLE] = job["url"]
        if job["patch"]:
            install(job["patch"])
        code = worker.main([job["replay"]])
    finally:
        os._exit(code)


if __name__ == "__main__":
    os.environ.pop(VARIABLE, None)
    with suppress(BrokenPipeError):  # whoever asked is gone
        serve()
