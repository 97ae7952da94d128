"""When a target's replays are due: aligned times in UTC. Pure; knows no clock of its own.

`every` counts from 1970-01-01T00:00Z, so every process on every host names the same due times. `cron` has crontab's
meaning of weekday numbers (0 and 7 are Sunday); where both day and weekday are given, both must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.triggers.base import BaseTrigger  # type: ignore[import-untyped]  # no stubs
from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]  # no stubs
from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-untyped]  # no stubs

from driftpin.errors import ConfigError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")  # by crontab's number
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=366 * 8)  # how far back a cron time is looked for


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Exactly one of `every` (seconds) and `cron` (five fields, UTC); `grace` (seconds) is how late is too late."""

    every: int | None = None
    cron: str | None = None
    grace: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Schedule | None:
        """From a target's operations; None when it has no schedule. Raises `ConfigError` for an impossible cron."""
        if value["every"] is None and value["cron"] is None:
            return None
        found = cls(every=value["every"], cron=value["cron"], grace=value["grace"])
        found.trigger()
        return found

    def trigger(self) -> BaseTrigger:
        """For APScheduler; fires at exactly the times below."""
        if self.every is not None:
            return IntervalTrigger(seconds=self.every, start_date=EPOCH, timezone=UTC)
        return _cron(self.cron or "")

    def last(self, now: datetime) -> datetime | None:
        """The newest due time that is not after `now`; None when there was none in eight years."""
        if self.every is not None:
            step = timedelta(seconds=self.every)
            return EPOCH + (now - EPOCH) // step * step
        return _last_fire(_cron(self.cron or ""), now)

    def following(self, due: datetime) -> datetime:
        """The first due time after `due`."""
        if self.every is not None:
            step = timedelta(seconds=self.every)
            return EPOCH + ((due - EPOCH) // step + 1) * step
        fire = _cron(self.cron or "").get_next_fire_time(None, due + timedelta(microseconds=1))
        return fire.astimezone(UTC) if fire else due + LONGEST

    def deadline(self, due: datetime) -> datetime:
        """When the replay after the one of `due` is overdue."""
        return self.following(due) + timedelta(seconds=self.grace)


def _cron(text: str) -> CronTrigger:
    minute, hour, day, month, weekday = text.split()
    try:
        return CronTrigger(minute=minute, hour=hour, day=day, month=month, day_of_week=_weekdays(weekday), timezone=UTC)
    except ValueError as error:
        raise ConfigError(f"The cron schedule {text!r} is not usable: {error}.", remedy="Correct it.") from error


def _weekdays(field: str) -> str:
    """APScheduler 3 counts weekdays from Monday, crontab from Sunday: numbers become names."""
    return ",".join(name for part in field.split(",") for name in _names(part))


def _names(part: str) -> list[str]:
    span, _, step = part.partition("/")
    if span == "*" and not step:
        return ["*"]
    first, _, last = ("0", "", "6") if span == "*" else span.partition("-")
    if not (first.isdecimal() and (last or "0").isdecimal() and (step or "1").isdecimal()):
        return [part]  # names, which both read alike
    numbers = range(int(first), int(last or ("6" if step else first)) + 1, int(step or "1") or 1)
    if not numbers or numbers[-1] > 7:
        raise ValueError(f"weekday {part!r} is not within 0-7")
    return [WEEKDAYS[number] for number in numbers]


def _last_fire(trigger: CronTrigger, now: datetime) -> datetime | None:
    """Look back in windows that double until one holds a fire time, then walk to its end."""
    window = SHORTEST
    while window <= LONGEST:
        fires = list(_fires(trigger, now - window, now))
        if fires:
            return fires[-1]
        window *= 2
    return None


def _fires(trigger: CronTrigger, start: datetime, end: datetime) -> Iterator[datetime]:
    at = trigger.get_next_fire_time(None, start)
    while at is not None and at <= end:
        yield at.astimezone(UTC)
        at = trigger.get_next_fire_time(at, at + timedelta(microseconds=1))
