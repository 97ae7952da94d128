"""One replay as a value. Knows nothing of how it is stored or run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import RowMapping

from driftpin.trace.plan import Plan


class ReplayStatus(StrEnum):
    """Where a replay stands. Only `FINISHED` says that everything was executed."""

    QUEUED = "queued"  # wanted, nobody runs it yet
    RUNNING = "running"  # one attempt holds it
    FINISHED = "finished"  # its trace set is sealed
    FAILED = "failed"  # it broke off, `reason` says why; what was recorded is sealed
    INTERRUPTED = "interrupted"  # a person or a shutdown stopped it; what was recorded is sealed
    SKIPPED = "skipped"  # it was not to run after all, for example because the device was busy


ENDED = (ReplayStatus.FINISHED, ReplayStatus.FAILED, ReplayStatus.INTERRUPTED, ReplayStatus.SKIPPED)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """One execution of a suite on a target. What the worker has not said yet is None."""

    id: str  # "r-" and 8 hex digits
    target: str
    revision_id: int
    revision_number: int
    suite_digest: str
    plan: Plan
    status: ReplayStatus
    reason: str | None
    attempt: int  # counts from 1
    host: str
    device: str
    device_class: str | None
    environment: str | None  # digest for `Environments.get`
    model_digest: str | None
    stack_digest: str | None
    behaviour_digest: str | None
    context: str | None  # digest of the stable context
    volatile: Mapping[str, Any]  # context facts of this replay alone
    trace_set: str | None  # digest of the manifest
    created_at: datetime
    started_at: datetime | None
    heartbeat_at: datetime | None
    finished_at: datetime | None
    purpose: str
    series: str | None
    due: datetime | None
    baseline_id: int | None
    verdict: str | None
    summary: Mapping[str, Any]
    beside: str | None = None  # of a reference replay: the native one that it was run for

    @classmethod
    def from_row(cls, row: RowMapping) -> Replay:
        """From a row of `replays` joined with its revision's number."""
        parts = {name: part for name, part in row.items() if name not in ("seq", "arm")}
        parts["plan"], parts["status"] = Plan.from_json(row["plan"]), ReplayStatus(row["status"])
        parts["volatile"], parts["summary"] = row["volatile"] or {}, row["summary"] or {}
        return cls(**parts)

    @property
    def digests(self) -> dict[str, str | None]:
        """The environment's three digests by section."""
        return {"model": self.model_digest, "stack": self.stack_digest, "behaviour": self.behaviour_digest}
