"""The monitor as a process: one leader, clean stop, killed in mid-replay, ticks that come twice or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from monitor_samples import Clock, House, write_config

from driftpin.errors import ConfigError
from driftpin.settings.load import load_config
from driftpin.store import Store
from driftpin.store.replay import ReplayStatus
from driftpin.store.store import utc_now
from monitor import service
from monitor.wanted import wanted_of

PATIENCE = 60.0  # seconds before a test gives up; nothing is asserted about speed
PROGRAM = """
import sys, threading
from pathlib import Path
from driftpin.settings.load import load_config
from monitor.service import run
sys.exit(run(load_config(Path(sys.argv[1]), {}), sys.argv[2], stop=threading.Event(), once="--once" in sys.argv))
"""


class Process:
    """A monitor as its own process, and what it says."""

    def __init__(self, config: Path, url: str, *flags: str) -> None:
        command = [sys.executable, "-c", PROGRAM, str(config), url, *flags]
        self.child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
        self.lines: list[dict[str, Any]] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.child.stderr or ():
            self.lines.append(json.loads(line))

    @property
    def actions(self) -> list[str]:
        return [line["action"] for line in self.lines]

    def says(self, action: str) -> None:
        until(lambda: action in self.actions or self.child.poll() is not None)
        assert action in self.actions, self.lines

    def end(self, number: int = signal.SIGTERM) -> int:
        self.child.send_signal(number)
        return self.finish()

    def finish(self) -> int:
        status = self.child.wait(PATIENCE)
        self.reader.join()
        assert self.child.stderr is not None
        self.child.stderr.close()
        return status


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@pytest.fixture
def house(sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    house = House(folder=tmp_path, url=sqlite_url, clock=Clock())
    yield house
    house.store.close()


def statuses(store: Store) -> list[str]:
    """Of all replays, oldest first."""
    return [r.status.value for r in reversed(store.replays.list())]


def test_one_leads_and_the_other_takes_over(database_url: str, tmp_path: Path) -> None:
    config = write_config(tmp_path)
    first = Process(config, database_url)
    first.says("leading")
    second = Process(config, database_url)
    second.says("waiting")
    first.says("judged")
    assert Process(config, database_url, "--once").finish() == service.NOT_LEADING
    assert first.end() == 0
    second.says("leading")
    assert second.end() == 0
    with Store.open(database_url) as store:
        # One replay of the due time; the hour may have turned meanwhile.
        assert {r.status for r in store.replays.list()} == {ReplayStatus.FINISHED}
        assert len({r.due for r in store.replays.list()}) == len(store.replays.list()) <= 2


def test_killed_in_mid_replay_and_restarted(house: House) -> None:
    house.fault(slow=4)  # the orphaned worker goes on for a while, and must not count
    first = Process(house.config.path, house.url)
    until(lambda: "running" in statuses(house.store))
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    house.fault()
    second = Process(house.config.path, house.url)
    second.says("judged")
    assert second.end() == 0
    assert statuses(house.store)[:2] == ["failed", "finished"]
    assert house.store.replays.list()[-1].reason == "its worker is gone: no sign of life"
    assert house.incidents() == []  # a monitor that was killed is not the target's fault


def test_a_stop_interrupts_the_replay_and_the_next_start_makes_up_for_it(house: House) -> None:
    house.fault(slow=30)
    first = Process(house.config.path, house.url)
    until(lambda: "running" in statuses(house.store))
    assert first.end(signal.SIGINT) == 0
    assert first.actions[-1] == "stopped"
    assert statuses(house.store) == ["interrupted"]
    house.fault()
    assert Process(house.config.path, house.url, "--once").finish() == 0
    assert statuses(house.store) == ["interrupted", "finished"]
    assert house.incidents() == []


def test_the_clock_orders_by_itself_until_it_is_stopped(house: House) -> None:
    house.target = 'every = "1s"'
    house.fault()
    thread = threading.Thread(target=service.run, args=(house.config, house.url), kwargs={"stop": house.stop})
    thread.start()
    until(lambda: statuses(house.store).count("finished") >= 3)
    house.stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    dues = [r.due for r in house.store.replays.list() if r.due]
    assert len(set(dues)) == len(dues)


def test_ticks_twice_too_early_and_too_late(house: House) -> None:
    monitor = house.monitor()
    first = monitor.ticks.tick(house.wanted)
    assert first is not None
    assert first.due == datetime(2026, 1, 5, 12, tzinfo=UTC)
    assert monitor.ticks.tick(house.wanted) is None
    assert monitor.ticks.order(house.wanted, first.due) is None  # also when the mark was not moved yet

    house.clock.forward(minutes=59)
    assert monitor.ticks.tick(house.wanted) is None
    house.clock.forward(hours=5)  # five were missed, one is made up for
    late = monitor.ticks.tick(house.wanted)
    assert late is not None
    assert late.due == datetime(2026, 1, 5, 17, tzinfo=UTC)
    assert monitor.ticks.tick(house.wanted) is None
    house.clock.forward(hours=-3)  # the clock was set back
    assert monitor.ticks.tick(house.wanted) is None
    assert len(house.store.replays.list()) == 2


def test_what_waited_too_long_is_not_made_up_for_twice(house: House) -> None:
    monitor = house.monitor()
    monitor.ticks.tick(house.wanted)
    house.clock.forward(hours=1)
    monitor.ticks.tick(house.wanted)
    monitor.pass_through()
    assert statuses(house.store) == ["skipped", "finished"]


def busy_with_a_person_s_replay(house: House) -> str:
    """A replay of the same device that somebody runs by hand."""
    house.bless()
    blessed = house.store.replays.list()[0]
    revision = house.store.targets.get(blessed.revision_id)
    mine = house.store.replays.create(
        revision, blessed.suite_digest, blessed.plan, host=blessed.host, device=blessed.device
    )
    assert mine is not None
    house.store.replays.claim(mine.id)
    return mine.id


def test_a_busy_device_is_skipped_and_in_the_end_overdue(house: House) -> None:
    mine = busy_with_a_person_s_replay(house)
    assert house.hour(beating=mine).status is ReplayStatus.SKIPPED
    assert house.scheduled()[0].reason == f"busy: replay {mine} has cpu"
    assert house.incidents() == []
    # Watched since 13:00:30; a replay of 14:00 with 45 minutes of grace is missed at 14:45.
    house.clock.at = datetime(2026, 1, 5, 14, 44, tzinfo=UTC)
    house.store.replays.touch(mine, 1)
    house.monitor().pass_through()
    assert house.incidents() == []
    house.clock.forward(minutes=2)
    house.monitor().pass_through()
    house.monitor().pass_through()
    assert house.incidents() == [("overdue", "open", 1)]

    house.store.replays.stop(mine, 1, ReplayStatus.INTERRUPTED, "done with it")
    assert house.hour().verdict == "match"
    assert house.incidents() == [("overdue", "resolved", 1)]


def test_a_busy_device_is_waited_for_where_that_is_asked(house: House) -> None:
    house.target = 'every = "1h"\nbudget = { when_busy = "wait" }'
    house.fault()
    mine = busy_with_a_person_s_replay(house)
    assert house.hour(beating=mine).status is ReplayStatus.QUEUED
    house.store.replays.stop(mine, 1, ReplayStatus.INTERRUPTED, "done with it")
    house.monitor().pass_through()
    assert house.scheduled()[0].status is ReplayStatus.FINISHED


def test_a_silent_attempt_is_reaped_and_a_fresh_one_ordered(house: House) -> None:
    monitor = house.monitor()
    monitor.start()
    (queued,) = house.store.replays.list()
    house.store.replays.claim(queued.id)  # by a worker on a machine that then lost its power
    monitor.pass_through()
    assert statuses(house.store) == ["running"]
    house.clock.forward(minutes=45 + 10 + 1)  # longer than its time limit and the silence allowed
    monitor.pass_through()
    assert statuses(house.store) == ["failed", "finished"]
    assert house.incidents() == []


@pytest.mark.parametrize("purpose", ["confirm", "reference"])
def test_repeats_that_an_ended_monitor_ordered_are_forgotten(house: House, purpose: str) -> None:
    house.bless()
    done = house.hour()
    revision = house.store.targets.get(done.revision_id)
    asked = {"host": done.host, "device": done.device, "purpose": purpose}
    running = house.store.replays.create(revision, done.suite_digest, done.plan, **asked)
    assert running is not None
    house.store.replays.claim(running.id)
    house.store.replays.create(revision, done.suite_digest, done.plan, **asked)
    house.monitor().start()
    waiting, dead = house.store.replays.list()[:2]
    assert (waiting.status, dead.status) == (ReplayStatus.SKIPPED, ReplayStatus.FAILED)
    assert house.hour().status is ReplayStatus.FINISHED  # the device is free


def test_an_hour_without_change_adds_nothing_but_its_row(house: House) -> None:
    house.bless()
    house.hour()
    before = house.store.size()
    for _ in range(3):
        house.hour()
    grown = {name: rows - before[name][0] for name, (rows, _) in house.store.size().items() if rows > before[name][0]}
    assert grown == {"replays": 3}


def test_a_damaged_blob_is_told_and_does_not_stop_the_monitor(house: House) -> None:
    baseline = house.bless()
    with house.store.begin() as conn:
        conn.exec_driver_sql("UPDATE blobs SET data = x'00' WHERE sha256 = ?", (baseline.trace_set,))
    house.hour()
    house.monitor().pass_through()
    assert [kind for kind, *_ in house.incidents()] == ["cannot_measure"]


def test_a_bug_in_judging_is_loud_and_stumbled_over_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("monitor.evaluate.assess_replay", bug)
    with pytest.raises(ZeroDivisionError):
        house.hour()
    monkeypatch.undo()
    assert house.incidents() == [("cannot_measure", "open", 1)]
    house.monitor().pass_through()
    house.hour()
    assert house.incidents() == [("cannot_measure", "resolved", 1)]


def test_without_a_schedule_there_is_nothing_to_watch(tmp_path: Path) -> None:
    path = write_config(tmp_path, target='place = "any"')
    with pytest.raises(ConfigError, match=r"No target in .* has a schedule"):
        wanted_of(load_config(path, {}))


def test_an_impossible_cron_is_refused_at_the_start(tmp_path: Path) -> None:
    path = write_config(tmp_path, target='cron = "61 * * * *"')
    with pytest.raises(ConfigError, match="'61 \\* \\* \\* \\*' is not usable"):
        wanted_of(load_config(path, {}))


def test_a_new_store_is_made(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path), {})
    stop = threading.Event()
    assert service.run(config, f"sqlite:///{tmp_path / 'new.db'}", stop=stop, once=True) == 0
    with Store.open(f"sqlite:///{tmp_path / 'new.db'}") as store:
        assert statuses(store) == ["finished"]
        assert utc_now() - store.replays.list()[0].created_at < timedelta(hours=1)
