"""The last due time that each series handed out. Knows nothing of cron expressions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select, update

from driftpin.store import tables
from driftpin.store.access import Access, changed, serialise

TABLE = tables.schedules


@dataclass(frozen=True)
class Schedules:
    """Read and move forward."""

    access: Access

    def last_due(self, series: str) -> datetime | None:
        """The last due time, None for a new series."""
        with self.access.read() as conn:
            return conn.scalar(select(TABLE.c.due).where(TABLE.c.series == series))

    def set_due(self, series: str, due: datetime) -> bool:
        """Move the series forward to `due`; False when it stands there or later already."""
        with self.access.begin() as conn:
            serialise(conn, f"series:{series}")
            older = (TABLE.c.series == series, TABLE.c.due < due)
            if changed(conn, update(TABLE).where(*older).values(due=due)):
                return True
            known = conn.scalar(select(TABLE.c.due).where(TABLE.c.series == series))
            if known is None:
                conn.execute(insert(TABLE).values(series=series, due=due))
            return known is None
