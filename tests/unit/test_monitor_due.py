"""Due times: aligned, in UTC, with crontab's meaning of weekdays; the trigger fires at exactly those times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftpin.errors import ConfigError
from monitor.backoff import LONGEST, pause
from monitor.due import EPOCH, Schedule

NOW = datetime(2026, 1, 7, 15, 20, 30, tzinfo=UTC)  # a Wednesday
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("every", "last", "following"),
    [
        (3600, "2026-01-07T15:00", "2026-01-07T16:00"),
        (900, "2026-01-07T15:15", "2026-01-07T15:30"),
        (86400, "2026-01-07", "2026-01-08"),
        (7 * 86400, "2026-01-01", "2026-01-08"),  # weeks count from 1970-01-01, a Thursday
    ],
)
def test_every_is_aligned(every: int, last: str, following: str) -> None:
    schedule = Schedule(every=every, grace=60)
    assert schedule.last(NOW) == at(last)
    assert schedule.following(NOW) == at(following)
    assert schedule.deadline(at(last)) == at(following) + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("cron", "last", "following"),
    [
        ("0 * * * *", "2026-01-07T15:00", "2026-01-07T16:00"),
        ("*/20 * * * *", "2026-01-07T15:20", "2026-01-07T15:40"),
        ("30 4 * * *", "2026-01-07T04:30", "2026-01-08T04:30"),
        ("0 9 * * 1", "2026-01-05T09:00", "2026-01-12T09:00"),  # Monday, though APScheduler's 1 is Tuesday
        ("0 9 * * 0", "2026-01-04T09:00", "2026-01-11T09:00"),
        ("0 9 * * 7", "2026-01-04T09:00", "2026-01-11T09:00"),
        ("0 9 * * 1-5", "2026-01-07T09:00", "2026-01-08T09:00"),
        ("0 9 * * 0-6", "2026-01-07T09:00", "2026-01-08T09:00"),
        ("0 9 * * 6,0", "2026-01-04T09:00", "2026-01-10T09:00"),
        ("0 9 * * */3", "2026-01-07T09:00", "2026-01-10T09:00"),  # Sunday, Wednesday, Saturday
        ("0 9 * * mon-fri", "2026-01-07T09:00", "2026-01-08T09:00"),
        ("0 0 1 1 *", "2026-01-01", "2027-01-01"),
        ("0 0 29 2 *", "2024-02-29", "2028-02-29"),
    ],
)
def test_cron_in_utc(cron: str, last: str, following: str) -> None:
    schedule = Schedule(cron=cron, grace=60)
    assert schedule.last(NOW) == at(last)
    assert schedule.following(NOW) == at(following)


def test_a_due_time_is_its_own_last_one_and_not_its_following() -> None:
    for schedule in (Schedule(every=3600, grace=1), Schedule(cron="0 * * * *", grace=1)):
        due = at("2026-01-07T15:00")
        assert schedule.last(due) == due
        assert schedule.following(due) == at("2026-01-07T16:00")


@given(now=MOMENTS, every=st.integers(1, 10**7))
def test_last_and_following_enclose_now(now: datetime, every: int) -> None:
    schedule = Schedule(every=every, grace=1)
    last = schedule.last(now)
    assert last is not None
    assert last <= now < schedule.following(now)
    assert (last - EPOCH) % timedelta(seconds=every) == timedelta(0)
    assert schedule.following(last) == schedule.following(now)


@given(now=MOMENTS, every=st.integers(1, 10**7))
def test_the_trigger_fires_at_the_following_due_time(now: datetime, every: int) -> None:
    schedule = Schedule(every=every, grace=1)
    fire = schedule.trigger().get_next_fire_time(None, now + timedelta(microseconds=1))
    assert fire == schedule.following(now)


@pytest.mark.parametrize("cron", ["61 * * * *", "0 9 * * 8", "0 9 * * 5-1", "0 9 * * funday", "0 9 32 * *"])
def test_an_impossible_cron_is_refused(cron: str) -> None:
    with pytest.raises(ConfigError, match="is not usable"):
        Schedule.from_json({"every": None, "cron": cron, "grace": 1})


def test_no_schedule_is_none() -> None:
    assert Schedule.from_json({"every": None, "cron": None, "grace": 1}) is None


def test_a_pause_doubles_up_to_an_hour() -> None:
    assert [pause(n, 0.0).total_seconds() for n in (1, 2, 3, 10)] == [2.5, 5, 10, 1280]
    assert pause(11, 0.0) == pause(1000, 0.0) == LONGEST / 2


@given(attempt=st.integers(1, 10**6), chance=st.floats(0, 1, exclude_max=True), asked=st.floats(0, 10**9))
def test_a_pause_is_bounded(attempt: int, chance: float, asked: float) -> None:
    assert timedelta(seconds=2.5) <= pause(attempt, chance) <= LONGEST
    assert pause(attempt, chance) <= pause(attempt, chance, asked) <= timedelta(hours=6)
    assert pause(attempt, chance, min(asked, 6 * 3600)) >= timedelta(seconds=min(asked, 6 * 3600) - 1e-3)
