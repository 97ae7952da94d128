"""A monitor to hold: a small suite on the fake engine, a clock that a test moves, a receiver that verifies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

from driftpin.settings.config import Config
from driftpin.settings.load import load_config
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.workflow.bless import SEEDS, bless
from driftpin.workflow.launch import launch
from driftpin.workflow.order import place
from driftpin.workflow.plans import bless_plan
from driftpin.workflow.refer import run_beside
from monitor.service import Monitor
from monitor.wanted import Wanted, wanted_of

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
START = datetime(2026, 1, 5, 12, 0, 30, tzinfo=UTC)  # a Monday

SUITE = """\
name: tiny
canaries:
  - {id: sea, prompt: "Once upon a time by the sea", settings: {max_new_tokens: 8}}
  - {id: one, prompt: "1 2 3", settings: {max_new_tokens: 6}}
"""


class Clock:
    """The time, as a test says."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def forward(self, **span: float) -> None:
        self.at += timedelta(**span)


def write_config(
    folder: Path, *, faults: dict[str, Any] | None = None, url: str = "", text: str = "show", target: str = ""
) -> Path:
    """A configuration with one target `chat`; `url` adds a signed webhook that hears everything, before the log."""
    (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
    (folder / "secret").write_text(SECRET + "\n", encoding="utf-8")
    (folder / "driftpin.toml").write_text(
        f"""
[suites.tiny]
path = "suite.yaml"
text = "{text}"
[targets.chat]
engine = "fake"
suite = "tiny"
owner = "ml-platform"
options = {{ faults = {_toml(faults or {})} }}
{target or 'every = "1h"'}
[routes]
page = {'["hook", "log"]' if url else '["log"]'}
ticket = {'["hook", "log"]' if url else '["log"]'}
[monitor]
tick_seconds = 0.1
"""
        + (f'[channels.hook]\nkind = "webhook"\nurl = "{url}"\nsecret = {{ file = "secret" }}\n' if url else ""),
        encoding="utf-8",
    )
    return folder / "driftpin.toml"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


@dataclass
class House:
    """One store and its configuration, which a test may change; every `monitor()` is a freshly started one."""

    folder: Path
    url: str
    clock: Clock
    hook: str = ""
    text: str = "show"
    target: str = ""
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.store = Store.open(self.url, now=self.clock)
        self.fault()

    def fault(self, **faults: Any) -> None:
        """Plant these faults in the target's recipe, and take out all others."""
        path = write_config(self.folder, faults=faults, url=self.hook, text=self.text, target=self.target)
        self.config: Config = load_config(path, {})

    @property
    def wanted(self) -> Wanted:
        return wanted_of(self.config)[0]

    def monitor(self) -> Monitor:
        return Monitor.of(self.config, self.store, self.url, wanted_of(self.config), self.stop, self.clock)

    def bless(self) -> Baseline:
        """What `driftpin baseline bless chat` does."""
        order = self.wanted.order
        queued = place(self.store, order, bless_plan(order.operations), "bless")
        assert queued is not None
        done = launch(self.store, self.url, queued, lambda event: None)
        assert done.status is ReplayStatus.FINISHED, done.reason
        reference = run_beside(self.store, done, done.trace_set or "", self._run, SEEDS)
        return bless(self.store, done, "ada", "first look", reference=reference)

    def _run(self, queued: Replay) -> Replay:
        return launch(self.store, self.url, queued, lambda event: None)

    def hour(self, beating: str | None = None) -> Replay:
        """An hour passes and a monitor does what is due; its scheduled replay is returned. `beating` stays alive."""
        self.clock.forward(hours=1)
        if beating is not None:
            self.store.replays.touch(beating, 1)
        monitor = self.monitor()
        monitor.start()
        monitor.pass_through()
        deliver(monitor)
        return self.scheduled()[0]

    def scheduled(self) -> Sequence[Replay]:
        return self.store.replays.list("chat", series=self.wanted.series)

    def incidents(self) -> list[tuple[str, str, int]]:
        """Kind, state and count, oldest first."""
        return [(i.kind.value, i.state.value, i.count) for i in reversed(self.store.incidents.list())]


def deliver(monitor: Monitor) -> None:
    for courier in monitor.couriers:
        while courier.deliver_due():
            pass


@dataclass
class Receiver:
    """What arrived, and what to answer next: a status, or a status with headers; 204 when nothing is planned."""

    url: str
    got: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)
    answers: list[int | tuple[int, dict[str, str]]] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(body["status"], body["kind"]) for _, body in self.got]


@contextmanager
def receiving(port: int = 0, check: Callable[..., Any] | None = None) -> Iterator[Receiver]:
    """A real HTTP server; every request's signature is verified by the standardwebhooks library's own rules."""
    verify = check or _verified
    receiver = Receiver(url="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.append((headers, verify(headers, data)))
            answer = receiver.answers.pop(0) if receiver.answers else 204
            status, extra = answer if isinstance(answer, tuple) else (answer, {})
            self.send_response(status)
            for name, value in {"content-length": "0", **extra}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _verified(headers: dict[str, str], data: bytes) -> dict[str, Any]:
    """The library refuses old timestamps, and a test's clock stands still: its signature is compared instead."""
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    expected = Webhook(SECRET).sign(headers["webhook-id"], at, data.decode())
    assert headers["webhook-signature"] == expected
    body: dict[str, Any] = json.loads(data)
    return body


def verified_now(headers: dict[str, str], data: bytes) -> dict[str, Any]:
    """By the library alone, time included."""
    body: dict[str, Any] = Webhook(SECRET).verify(data, headers)
    return body
