"""Incidents and their events as values. Knows nothing of how they are stored or delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import RowMapping


class IncidentKind(StrEnum):
    """What an incident is about."""

    DRIFT = "drift"  # tokens or numbers moved
    BROKEN = "broken"  # non-finite numbers, or one token for ever
    UNSTABLE = "unstable"  # repeats disagree
    DEVICE_SUSPECT = "device_suspect"  # behaviour changed though model and stack did not
    CANNOT_MEASURE = "cannot_measure"  # the target does not run here
    OVERDUE = "overdue"  # a replay is late


class IncidentState(StrEnum):
    """Where an incident stands."""

    OPEN = "open"  # nobody has looked yet
    ACKNOWLEDGED = "acknowledged"  # somebody has it in hand
    RESOLVED = "resolved"  # over; the same cause later is a new incident


class IncidentEventKind(StrEnum):
    """What changed about an incident."""

    OPENED = "opened"  # the cause was seen for the first time
    UPDATED = "updated"  # its severity or title changed
    ACKNOWLEDGED = "acknowledged"  # a person took it
    RESOLVED = "resolved"  # it ended


@dataclass(frozen=True, kw_only=True)
class Incident:
    """One cause on one target; `key` (sha256) is the same whenever the cause is."""

    id: int
    key: str
    target: str
    kind: IncidentKind
    state: IncidentState
    severity: str
    title: str
    body: Mapping[str, Any]
    opened_at: datetime
    updated_at: datetime
    resolved_at: datetime | None
    first_bad: str | None  # replay ids
    last_good: str | None
    count: int  # times that the cause was seen

    @classmethod
    def from_row(cls, row: RowMapping) -> Incident:
        """As stored."""
        return cls(**{**row, "kind": IncidentKind(row["kind"]), "state": IncidentState(row["state"])})


@dataclass(frozen=True, kw_only=True)
class IncidentEvent:
    """One change of one incident: history, and what a delivery carries."""

    id: int
    incident_id: int
    kind: IncidentEventKind
    payload: Mapping[str, Any]  # the incident's severity, title and body at that time, and why
    at: datetime

    @classmethod
    def from_row(cls, row: RowMapping) -> IncidentEvent:
        """As stored."""
        return cls(**{**row, "kind": IncidentEventKind(row["kind"])})
