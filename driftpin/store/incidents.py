"""Incidents: at most one that is not resolved per key. An event and its deliveries are written in one transaction.

Knows nothing of verdicts or channels' kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, insert, select, update

from driftpin.errors import NotFoundError
from driftpin.store import deliveries, tables
from driftpin.store.access import Access, serialise
from driftpin.store.incident import Incident, IncidentEvent, IncidentEventKind, IncidentKind, IncidentState

TABLE, EVENTS = tables.incidents, tables.incident_events

Outcome = tuple[Incident, IncidentEvent | None]


@dataclass(frozen=True)
class Incidents:
    """Open, update, acknowledge, resolve; `channels` get a delivery for the event, if there is one."""

    access: Access

    def open_or_update(
        self,
        key: str,
        *,
        target: str,
        kind: IncidentKind,
        severity: str,
        title: str,
        body: Mapping[str, Any],
        first_bad: str | None = None,
        last_good: str | None = None,
        channels: Sequence[str] = (),
    ) -> Outcome:
        """The incident under `key`, opened if none is; an event only if it is new or severity or title changed.

        `first_bad` and `last_good` are those of the opening; body and count follow the latest sight.
        """
        now = self.access.now()
        shown: dict[str, Any] = {"severity": severity, "title": title, "body": dict(body)}
        with self.access.begin() as conn:
            serialise(conn, f"incident:{key}")
            old = _unresolved(conn, TABLE.c.key == key)
            if old is None:
                row = {"key": key, "target": target, "kind": kind, "state": IncidentState.OPEN, **shown}
                row |= {"opened_at": now, "updated_at": now, "first_bad": first_bad, "last_good": last_good}
                new = conn.execute(insert(TABLE).values(count=1, **row).returning(TABLE)).mappings().one()
                return self._tell(conn, new, IncidentEventKind.OPENED, channels)
            new = _update(conn, old["id"], **shown, updated_at=now, count=TABLE.c.count + 1)
            if all(new[part] == old[part] for part in ("severity", "title")):
                return Incident.from_row(new), None
            return self._tell(conn, new, IncidentEventKind.UPDATED, channels)

    def acknowledge(self, incident_id: int, who: str, channels: Sequence[str] = ()) -> Outcome:
        """Take an open incident in hand; no event if somebody has already."""
        with self.access.begin() as conn:
            row = _locked(conn, incident_id)
            if row["state"] != IncidentState.OPEN:
                return Incident.from_row(row), None
            new = _update(conn, incident_id, state=IncidentState.ACKNOWLEDGED, updated_at=self.access.now())
            return self._tell(conn, new, IncidentEventKind.ACKNOWLEDGED, channels, who=who)

    def resolve(self, ref: str | int, reason: str, channels: Sequence[str] = ()) -> Outcome | None:
        """End the incident with that id, or the unresolved one under that key; None when there is none to end."""
        now = self.access.now()
        with self.access.begin() as conn:
            found = _unresolved(conn, TABLE.c.key == ref if isinstance(ref, str) else TABLE.c.id == ref)
            if found is None or _locked(conn, found["id"])["state"] == IncidentState.RESOLVED:
                return None
            new = _update(conn, found["id"], state=IncidentState.RESOLVED, updated_at=now, resolved_at=now)
            return self._tell(conn, new, IncidentEventKind.RESOLVED, channels, reason=reason)

    def _tell(
        self, conn: Connection, row: RowMapping, kind: IncidentEventKind, channels: Sequence[str], **words: str
    ) -> Outcome:
        payload = {part: row[part] for part in ("severity", "title", "body", "count")} | words
        values = {"incident_id": row["id"], "kind": kind, "payload": payload, "at": self.access.now()}
        event = conn.execute(insert(EVENTS).values(values).returning(EVENTS)).mappings().one()
        deliveries.enqueue(conn, event["id"], channels, self.access.now())
        return Incident.from_row(row), IncidentEvent.from_row(event)

    def get(self, incident_id: int) -> Incident:
        """The incident with that id; raises `NotFoundError`."""
        with self.access.read() as conn:
            row = conn.execute(select(TABLE).where(TABLE.c.id == incident_id)).mappings().first()
        if row is None:
            raise _missing(incident_id)
        return Incident.from_row(row)

    def list(
        self, state: IncidentState | None = None, target: str | None = None, limit: int = 100
    ) -> Sequence[Incident]:
        """Newest first."""
        wanted = {"state": state, "target": target}
        query = select(TABLE).where(*(TABLE.c[name] == v for name, v in wanted.items() if v is not None))
        with self.access.read() as conn:
            rows = conn.execute(query.order_by(TABLE.c.id.desc()).limit(limit)).mappings()
            return [Incident.from_row(row) for row in rows]

    def unresolved(self, target: str | None = None) -> Sequence[Incident]:
        """Open and acknowledged ones, oldest first."""
        query = select(TABLE).where(TABLE.c.state != IncidentState.RESOLVED).order_by(TABLE.c.id)
        query = query if target is None else query.where(TABLE.c.target == target)
        with self.access.read() as conn:
            return [Incident.from_row(row) for row in conn.execute(query).mappings()]

    def event(self, event_id: int) -> IncidentEvent:
        """What a delivery carries; raises `NotFoundError`."""
        with self.access.read() as conn:
            row = conn.execute(select(EVENTS).where(EVENTS.c.id == event_id)).mappings().first()
        if row is None:
            raise NotFoundError(f"There is no incident event {event_id}.")
        return IncidentEvent.from_row(row)

    def events(self, incident_id: int) -> Sequence[IncidentEvent]:
        """The history of one incident, oldest first."""
        query = select(EVENTS).where(EVENTS.c.incident_id == incident_id).order_by(EVENTS.c.id)
        with self.access.read() as conn:
            return [IncidentEvent.from_row(row) for row in conn.execute(query).mappings()]


def _unresolved(conn: Connection, which: ColumnElement[bool]) -> RowMapping | None:
    query = select(TABLE).where(which, TABLE.c.state != IncidentState.RESOLVED)
    return conn.execute(query).mappings().first()


def _locked(conn: Connection, incident_id: int) -> RowMapping:
    """The row as it is once no other transaction holds it; SQLite ignores FOR UPDATE and needs none."""
    query = select(TABLE).where(TABLE.c.id == incident_id).with_for_update()
    row = conn.execute(query).mappings().first()
    if row is None:
        raise _missing(incident_id)
    return row


def _update(conn: Connection, incident_id: int, **values: Any) -> RowMapping:
    statement = update(TABLE).where(TABLE.c.id == incident_id).values(**values).returning(TABLE)
    return conn.execute(statement).mappings().one()


def _missing(incident_id: int) -> NotFoundError:
    return NotFoundError(
        f"There is no incident {incident_id}.", remedy="The log of `driftpin monitor` names each when it opens."
    )
