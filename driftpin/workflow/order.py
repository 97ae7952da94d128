"""Ordering a replay: the target's configuration becomes immutable revisions and a queued row."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from driftpin.errors import ConfigError
from driftpin.settings.config import Config
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import Replay
from driftpin.suite.builtin import builtin_suite
from driftpin.suite.canary import Suite
from driftpin.suite.load import load_suite
from driftpin.trace.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a person or a schedule wants replayed, taken from the configuration."""

    target: str
    recipe: Recipe
    operations: Mapping[str, Any]
    suite_name: str
    suite: Suite


def order_of(config: Config, target: str) -> Order:
    """The target's order; raises `ConfigError` for an unknown one and `SuiteError` for a bad suite."""
    name = config.target(target).suite
    return Order(
        target=target,
        recipe=config.recipe(target),
        operations=config.operations(target),
        suite_name=name,
        suite=named_suite(config, name),
    )


def named_suite(config: Config, name: str) -> Suite:
    """The suite that the configuration names: a file, or the one that driftpin brings."""
    path = config.suite_path(name)
    if path is not None:
        return load_suite(path)
    suite, wanted = builtin_suite(), config.suite(name).builtin
    if wanted != suite.name:
        raise ConfigError(f"There is no built-in suite {wanted!r}.", remedy=f"Write builtin = {suite.name!r}.")
    return suite


def place(
    store: Store,
    order: Order,
    plan: Plan,
    purpose: str,
    *,
    due: datetime | None = None,
    series: str | None = None,
) -> Replay | None:
    """Write target revision, suite revision and replay; None when that due time has a replay already."""
    suite = store.suites.put(order.suite)
    revision = store.targets.put(order.target, order.recipe, order.operations, order.suite_name)
    return store.replays.create(
        revision,
        suite.digest,
        plan,
        host=socket.gethostname(),
        device=order.recipe.device,
        due=due,
        series=series,
        purpose=purpose,
    )


def series_name(order: Order, plan: Plan) -> str:
    """What may be compared over time here: target, arm, host and device; probe and shape are in the traces."""
    return f"{order.target}/{plan.arm.value}/{socket.gethostname()}/{order.recipe.device}"
