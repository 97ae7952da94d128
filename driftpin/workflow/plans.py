"""Which executions a target's ordinary replay has, and what they would cost. Pure but for reading past replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftpin.settings.grade import Grade, grade_of
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Arm, Probe, Shape
from driftpin.verdict.quorum import Quorum
from driftpin.workflow.bless import blessing_plan
from driftpin.workflow.bundled import BundledReference
from driftpin.workflow.order import Order
from driftpin.workflow.refer import wanted

DRY = "driftpin.dry_run/1"


def replay_plan(operations: Mapping[str, Any]) -> Plan:
    """Native arm, the target's probes, alone, as often as its quorum asks, scored on the baseline's tokens."""
    probes = tuple(Probe(p) for p in operations["probes"])
    return Plan(probes=probes, score_on=BASELINE, repeats=quorum_of(operations).n)


def quorum_of(operations: Mapping[str, Any]) -> Quorum:
    """k of n, on targets graded below bitwise; one execution is enough for one that repeats every bit."""
    asked = operations.get("quorum") or {}
    return Quorum(**asked) if grade_of(operations) is not Grade.BITWISE else Quorum()


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
        "reference_executions": len(order.suite.canaries) if _would_refer(store, order) else 0,
        "estimated_seconds": None if per_execution is None else round(per_execution * count, 1),
        "estimated_from": None if per_execution is None else "the last finished replay of this target",
    }


def _would_refer(store: Store, order: Order) -> bool:
    """The target has a reference arm, and one of its current baselines has scores to hold it against."""
    every = store.baselines.list(order.target) if wanted(order.operations) else ()
    current = {b.device_class: store.baselines.current(order.target, b.device_class) for b in every}
    bundles = (store.baselines.bundle(baseline) for baseline in current.values() if baseline is not None)
    return any(BundledReference.from_json(bundle.get("reference")).trace_set for bundle in bundles)


def _seconds_per_execution(store: Store, target: str) -> float | None:
    past = store.replays.list(target, limit=20, status=ReplayStatus.FINISHED)
    native = (row for row in past if row.plan.arm is Arm.NATIVE)
    return next((seconds for row in native if (seconds := _measured(store, row)) is not None), None)


def _measured(store: Store, row: Replay) -> float | None:
    if row.started_at is None or row.finished_at is None or row.trace_set is None:
        return None
    count = len(store.traces.set(row.trace_set).entries)
    return (row.finished_at - row.started_at).total_seconds() / count if count else None
