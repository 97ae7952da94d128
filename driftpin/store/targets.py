"""Targets by revision: what was asked for, immutable once written. Knows nothing of configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, insert, select

from driftpin.canonical import canonical_json
from driftpin.errors import NotFoundError
from driftpin.settings.recipe import Recipe
from driftpin.store import tables
from driftpin.store.access import Access, serialise

TABLE = tables.target_revisions


@dataclass(frozen=True, kw_only=True)
class TargetRevision:
    """One revision of a target; `number` counts from 1 per target."""

    id: int
    target: str
    number: int
    recipe: Recipe
    operations: Mapping[str, Any]
    suite_name: str
    created_at: datetime

    @classmethod
    def from_row(cls, row: RowMapping) -> TargetRevision:
        """As stored."""
        return cls(**{**row, "recipe": Recipe.from_json(row["recipe"])})


@dataclass(frozen=True)
class Targets:
    """Put and get."""

    access: Access

    def put(self, name: str, recipe: Recipe, operations: Mapping[str, Any], suite_name: str) -> TargetRevision:
        """The target's latest revision, which is a new one only if recipe, operations or suite changed."""
        wanted = {"recipe": recipe.to_json(), "operations": dict(operations), "suite_name": suite_name}
        with self.access.begin() as conn:
            serialise(conn, f"target:{name}")
            row = _latest(conn, name)
            if row is None or canonical_json({part: row[part] for part in wanted}) != canonical_json(wanted):
                number = 1 if row is None else row["number"] + 1
                values = {"target": name, "number": number, "created_at": self.access.now(), **wanted}
                conn.execute(insert(TABLE).values(values))
                row = _latest(conn, name)
        return _found(row, f"Target {name!r}")

    def latest(self, name: str) -> TargetRevision:
        """The last revision; raises `NotFoundError`."""
        with self.access.read() as conn:
            return _found(_latest(conn, name), f"Target {name!r}")

    def get(self, revision_id: int) -> TargetRevision:
        """The revision with that id; raises `NotFoundError`."""
        with self.access.read() as conn:
            row = _first(conn, select(TABLE).where(TABLE.c.id == revision_id))
            return _found(row, f"Target revision {revision_id}")

    def names(self) -> list[str]:
        """All target names, sorted."""
        with self.access.read() as conn:
            return sorted(conn.scalars(select(TABLE.c.target).distinct()))


def _latest(conn: Connection, name: str) -> RowMapping | None:
    return _first(conn, select(TABLE).where(TABLE.c.target == name).order_by(TABLE.c.number.desc()).limit(1))


def _first(conn: Connection, query: Select[Any]) -> RowMapping | None:
    return conn.execute(query).mappings().first()


def _found(row: RowMapping | None, what: str) -> TargetRevision:
    if row is None:
        raise NotFoundError(f"{what} is not in the store.", remedy="`driftpin replay TARGET` writes it there.")
    return TargetRevision.from_row(row)
