"""What the monitor wants for one target, as one frozen value taken from the configuration. Knows no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftpin.errors import ConfigError
from driftpin.settings.config import Config
from driftpin.settings.policy import Policy, Severity
from driftpin.trace.plan import Plan
from driftpin.verdict.outcome import REASON_HIDDEN
from driftpin.workflow.order import Order, order_of, series_name
from driftpin.workflow.plans import replay_plan
from monitor.due import Schedule


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One target under watch."""

    order: Order
    plan: Plan
    schedule: Schedule
    policy: Policy
    routes: Mapping[str, Sequence[str]]  # channels by severity
    owner: str | None = None
    show_text: bool = True  # False keeps prompts and outputs out of alerts
    when_busy: str = "skip"  # or "wait": what to do while another replay has the device
    limit_seconds: float  # one replay may take so long

    @property
    def target(self) -> str:
        """The target's name."""
        return self.order.target

    @property
    def series(self) -> str:
        """The series that its scheduled replays belong to."""
        return series_name(self.order, self.plan)

    def channels(self, severity: Severity) -> Sequence[str]:
        """Where something as loud as this goes."""
        return self.routes.get(severity.value, ())

    def tellable(self, reason: str | None) -> str:
        """The reason of a failure as it may be told: a worker's last words can quote prompts and outputs."""
        if reason is None or self.show_text:
            return reason or "it says no reason"
        return REASON_HIDDEN

    @classmethod
    def of(cls, order: Order) -> Wanted | None:
        """From an order; None for a target without a schedule.

        A replay is stopped when both its budget and its grace are over: it is overdue by then whatever happens.
        """
        operations = order.operations
        schedule = Schedule.from_json(operations["schedule"])
        if schedule is None:
            return None
        return cls(
            order=order,
            plan=replay_plan(operations),
            schedule=schedule,
            policy=Policy.from_json(operations["policy"]),
            routes=operations["routes"],
            owner=operations["owner"],
            show_text=operations["text"] == "show",
            when_busy=operations["budget"]["when_busy"],
            limit_seconds=max(operations["budget"]["seconds"], schedule.grace),
        )


def wanted_of(config: Config) -> tuple[Wanted, ...]:
    """Every target with a schedule; raises `ConfigError` when there is none, `SuiteError` for a bad suite."""
    found = tuple(w for name in config.targets if (w := Wanted.of(order_of(config, name))) is not None)
    if not found:
        raise ConfigError(
            f"No target in {config.path} has a schedule, so there is nothing to watch.",
            remedy='Give a target `every = "1h"` or `cron = "0 * * * *"`.',
        )
    return found
