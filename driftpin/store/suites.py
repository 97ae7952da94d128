"""Suites by revision: a changed suite is a new revision, the same one is the same row. Knows nothing of files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, select, update

from driftpin.canonical import canonical_json
from driftpin.errors import NotFoundError
from driftpin.store import blobs, tables
from driftpin.store.access import Access, serialise
from driftpin.suite.canary import Canary, CanarySettings, Check, CheckKind, Message, Suite

TABLE = tables.suites
KIND = "suite"


@dataclass(frozen=True, kw_only=True)
class SuiteRevision:
    """One revision of a suite; `number` counts from 1 per name."""

    name: str
    number: int
    digest: str
    suite: Suite
    created_at: datetime

    @classmethod
    def from_row(cls, row: RowMapping, suite: Suite) -> SuiteRevision:
        """From a row and the body that it names."""
        return cls(
            name=row["name"],
            number=row["number"],
            digest=row["digest"],
            suite=suite,
            created_at=row["created_at"],
        )


@dataclass(frozen=True)
class Suites:
    """Put and get."""

    access: Access
    blobs: blobs.Blobs

    def put(self, suite: Suite) -> SuiteRevision:
        """Store the suite as the one in use under its name, as a new revision unless that content was one before."""
        body = blobs.Content(kind=KIND, plain=canonical_json(suite.to_json()))
        with self.access.begin() as conn:
            serialise(conn, f"suite:{suite.name}")
            row = conn.execute(select(TABLE).where(TABLE.c.digest == body.sha256)).mappings().first()
            number, turn = _last(conn, suite.name)
            if row is None:
                blobs.write(conn, [body])
                values = {"digest": body.sha256, "name": suite.name, "number": number + 1, "turn": turn + 1}
                conn.execute(insert(TABLE).values(created_at=self.access.now(), **values))
            elif row["turn"] != turn:
                conn.execute(update(TABLE).where(TABLE.c.digest == body.sha256).values(turn=turn + 1))
        return self.get(body.sha256)

    def get(self, digest: str) -> SuiteRevision:
        """The revision with that digest; raises `NotFoundError`."""
        return self._one(select(TABLE).where(TABLE.c.digest == digest), f"Suite {digest[:12]}")

    def latest(self, name: str) -> SuiteRevision:
        """The revision that was put last; raises `NotFoundError`."""
        return self._one(select(TABLE).where(TABLE.c.name == name).order_by(TABLE.c.turn.desc()), f"Suite {name!r}")

    def history(self, name: str) -> list[SuiteRevision]:
        """All revisions by number, first to last."""
        with self.access.read() as conn:
            rows = conn.execute(select(TABLE).where(TABLE.c.name == name).order_by(TABLE.c.number)).mappings().all()
        return [self._revision(row) for row in rows]

    def _one(self, query: Select[Any], what: str) -> SuiteRevision:
        with self.access.read() as conn:
            row = conn.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"{what} is not in the store.", remedy="Replay or check the suite first.")
        return self._revision(row)

    def _revision(self, row: RowMapping) -> SuiteRevision:
        return SuiteRevision.from_row(row, _parsed(self.blobs.get(row["digest"])))


def _last(conn: Connection, name: str) -> tuple[int, int]:
    query = select(func.coalesce(func.max(TABLE.c.number), 0), func.coalesce(func.max(TABLE.c.turn), 0))
    number, turn = conn.execute(query.where(TABLE.c.name == name)).one()
    return int(number), int(turn)


@lru_cache(maxsize=8)
def _parsed(body: bytes) -> Suite:
    return suite_from_json(json.loads(body))


def suite_from_json(value: Mapping[str, Any]) -> Suite:
    """The inverse of `Suite.to_json`."""
    canaries = tuple(_canary(canary) for canary in value["canaries"])
    return Suite(name=value["name"], canaries=canaries, clock=value["clock"])


def _canary(value: Mapping[str, Any]) -> Canary:
    return Canary(
        id=value["id"],
        messages=tuple(Message(**message) for message in value.get("messages", ())),
        prompt=value.get("prompt"),
        settings=CanarySettings(**value["settings"]),
        checks=tuple(Check(kind=CheckKind(kind), value=v) for check in value["checks"] for kind, v in check.items()),
        comment=value["comment"],
    )
