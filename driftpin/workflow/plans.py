"""Which executions a target's ordinary replay has, and what they would cost. Pure but for reading past replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Probe, Shape
from driftpin.workflow.bless import blessing_plan
from driftpin.workflow.order import Order

DRY = "driftpin.dry_run/1"


def replay_plan(operations: Mapping[str, Any]) -> Plan:
    """Native arm, the target's probes, alone, once; scores are forced on the baseline's tokens."""
    return Plan(probes=tuple(Probe(p) for p in operations["probes"]), score_on=BASELINE)


def bless_plan(operations: Mapping[str, Any], only: tuple[str, ...] = ()) -> Plan:
    """Every declared shape, repeated, scored on its own tokens."""
    shapes = [Shape(s) for s in operations["shapes"]]
    return blessing_plan(shapes, operations["repeats"], only)


def executions(order: Order, plan: Plan) -> int:
    """How many times a model would run a canary."""
    canaries = len(plan.only) or len(order.suite.canaries)
    return canaries * len(plan.probes) * len(plan.shapes) * plan.repeats


def dry(store: Store, order: Order, plan: Plan) -> dict[str, Any]:
    """What would be executed, and for about how long, judged by the target's last finished replay."""
    count = executions(order, plan)
    per_execution = _seconds_per_execution(store, order.target)
    return {
        "schema": DRY,
        "target": order.target,
        "suite": order.suite.name,
        "canaries": len(order.suite.canaries),
        "plan": plan.to_json(),
        "executions": count,
        "estimated_seconds": None if per_execution is None else round(per_execution * count, 1),
        "estimated_from": None if per_execution is None else "the last finished replay of this target",
    }


def _seconds_per_execution(store: Store, target: str) -> float | None:
    past = store.replays.list(target, limit=20, status=ReplayStatus.FINISHED)
    return next((seconds for row in past if (seconds := _measured(store, row)) is not None), None)


def _measured(store: Store, row: Replay) -> float | None:
    if row.started_at is None or row.finished_at is None or row.trace_set is None:
        return None
    count = len(store.traces.set(row.trace_set).entries)
    return (row.finished_at - row.started_at).total_seconds() / count if count else None
