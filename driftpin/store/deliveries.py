"""The outbox: one row per event and channel until it is sent. Knows nothing of how a channel sends.

A claim takes the row out of sight until a lease ends, so a crash while sending sends again with the same idempotency
key, and loses nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from driftpin.errors import NotFoundError
from driftpin.store import tables
from driftpin.store.access import Access, changed

TABLE = tables.deliveries


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"  # not tried yet
    SENT = "sent"  # the channel took it
    FAILED = "failed"  # tried in vain; is tried again at `next_at`
    DEAD = "dead"  # refused for good, or tried often enough


WAITING = (DeliveryState.PENDING, DeliveryState.FAILED)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One event on its way to one channel."""

    id: int
    event_id: int
    channel: str
    idempotency_key: str  # the same at every attempt
    state: DeliveryState
    attempts: int
    next_at: datetime
    last_error: str | None

    @classmethod
    def from_row(cls, row: RowMapping) -> Delivery:
        """As stored."""
        return cls(**{**row, "state": DeliveryState(row["state"])})


@dataclass(frozen=True)
class Deliveries:
    """Due, claim, and what came of it."""

    access: Access

    def due(self, now: datetime, limit: int = 100) -> list[Delivery]:
        """Waiting deliveries whose time has come, longest waiting first."""
        query = select(TABLE).where(TABLE.c.state.in_(WAITING), TABLE.c.next_at <= now)
        with self.access.read() as conn:
            rows = conn.execute(query.order_by(TABLE.c.next_at, TABLE.c.id).limit(limit)).mappings()
            return [Delivery.from_row(row) for row in rows]

    def claim(self, delivery: Delivery, until: datetime) -> bool:
        """Take it for one attempt, hidden from others until that time; False when somebody else was first."""
        seen = (TABLE.c.id == delivery.id, TABLE.c.attempts == delivery.attempts, TABLE.c.state.in_(WAITING))
        values = {"attempts": TABLE.c.attempts + 1, "next_at": until}
        with self.access.begin() as conn:
            return changed(conn, update(TABLE).where(*seen).values(values)) == 1

    def mark_sent(self, delivery_id: int) -> None:
        """The channel took it."""
        self._set(delivery_id, state=DeliveryState.SENT, last_error=None)

    def mark_failed(self, delivery_id: int, next_at: datetime, error: str, permanent: bool = False) -> None:
        """The attempt failed: again at `next_at`, or never when `permanent`."""
        state = DeliveryState.DEAD if permanent else DeliveryState.FAILED
        self._set(delivery_id, state=state, next_at=next_at, last_error=error)

    def _set(self, delivery_id: int, **values: Any) -> None:
        with self.access.begin() as conn:
            if not changed(conn, update(TABLE).where(TABLE.c.id == delivery_id).values(**values)):
                raise NotFoundError(f"There is no delivery {delivery_id}.")

    def get(self, delivery_id: int) -> Delivery:
        """The delivery with that id; raises `NotFoundError`."""
        with self.access.read() as conn:
            row = conn.execute(select(TABLE).where(TABLE.c.id == delivery_id)).mappings().first()
        if row is None:
            raise NotFoundError(f"There is no delivery {delivery_id}.")
        return Delivery.from_row(row)

    def counts(self) -> dict[DeliveryState, int]:
        """How many stand where; every state is there."""
        with self.access.read() as conn:
            rows = conn.execute(select(TABLE.c.state, func.count()).group_by(TABLE.c.state))
            found = {row[0]: int(row[1]) for row in rows}
        return {state: found.get(state.value, 0) for state in DeliveryState}


def enqueue(conn: Connection, event_id: int, channels: Sequence[str], now: datetime) -> None:
    """Rows for one event, in the transaction that wrote it; a channel named twice gets one."""
    for channel in dict.fromkeys(channels):
        key = f"msg_{secrets.token_hex(16)}"
        row = {"event_id": event_id, "channel": channel, "idempotency_key": key, "next_at": now}
        conn.execute(insert(TABLE).values(state=DeliveryState.PENDING, attempts=0, **row))
