"""Baselines: immutable bundles that a person blessed, and the append-only events that say which one is current.

Knows nothing of what is in a bundle, nor of how a verdict uses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, select

from driftpin.canonical import canonical_json
from driftpin.errors import BlessError, NotFoundError
from driftpin.store import blobs, tables
from driftpin.store.access import Access, serialise
from driftpin.store.replay import ReplayStatus
from driftpin.store.text import display_json

TABLE, EVENTS = tables.baselines, tables.baseline_events
KIND = "bundle"


class BaselineAction(StrEnum):
    """What a person did."""

    BLESS = "bless"  # a new baseline became current
    REVERT = "revert"  # an older one, or none, became current again


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """One blessed replay of a target on a device class; `number` counts from 1 for the two."""

    id: int
    target: str
    device_class: str
    number: int
    replay_id: str
    trace_set: str
    suite_digest: str
    environment: str
    bundle: str  # digest; `Baselines.bundle` reads it
    blessed_by: str
    reason: str
    created_at: datetime
    supersedes: int | None  # the baseline that was current before

    @classmethod
    def from_row(cls, row: RowMapping) -> Baseline:
        """As stored."""
        return cls(**row)


@dataclass(frozen=True, kw_only=True)
class BaselineEvent:
    """One line of the audit trail; `baseline_id` is current from here on."""

    id: int
    target: str
    device_class: str
    action: BaselineAction
    baseline_id: int | None
    who: str
    why: str
    at: datetime

    @classmethod
    def from_row(cls, row: RowMapping) -> BaselineEvent:
        """As stored."""
        return cls(**{**row, "action": BaselineAction(row["action"])})


@dataclass(frozen=True)
class Baselines:
    """Bless, revert, read. There is no update and no delete."""

    access: Access
    blobs: blobs.Blobs

    def put(
        self,
        target: str,
        device_class: str,
        replay_id: str,
        bundle: Mapping[str, Any],
        who: str,
        why: str,
        trace_set: str | None = None,
    ) -> Baseline:
        """Make a finished replay the current baseline; raises `BlessError` for any other replay.

        `bundle` is free-form JSON; keep a `floors` entry (None until they are measured). `trace_set` is the digest of
        a stored manifest that stands for the replay's own, where a successor keeps traces blessed before.
        """
        body = blobs.Content(kind=KIND, plain=canonical_json(display_json(bundle)))
        with self.access.begin() as conn:
            serialise(conn, f"baseline:{target}:{device_class}")
            replay = _blessable(conn, target, device_class, replay_id)
            blobs.write(conn, [body])
            row = {
                **{part: replay[part] for part in ("target", "trace_set", "suite_digest", "environment")},
                **{"device_class": device_class, "replay_id": replay_id, "bundle": body.sha256},
                **({"trace_set": trace_set} if trace_set else {}),
                **{"blessed_by": who, "reason": why, "created_at": self.access.now()},
                "number": _last_number(conn, target, device_class) + 1,
                "supersedes": _current(conn, target, device_class),
            }
            new = conn.execute(insert(TABLE).values(row).returning(TABLE)).mappings().one()
            self._append(conn, BaselineAction.BLESS, new["id"], target, device_class, who=who, why=why)
            return Baseline.from_row(new)

    def revert(self, target: str, device_class: str, who: str, why: str, to: int | None = None) -> Baseline | None:
        """Make `to`, or what the current baseline superseded, current; returns it, None when that is no baseline."""
        with self.access.begin() as conn:
            serialise(conn, f"baseline:{target}:{device_class}")
            current = _row(conn, _current(conn, target, device_class))
            if current is None and to is None:
                raise NotFoundError(f"{target} on {device_class} has no current baseline to revert.")
            wanted = to if current is None or to is not None else current["supersedes"]
            row = _row(conn, wanted)
            if wanted is not None and (row is None or (row["target"], row["device_class"]) != (target, device_class)):
                raise NotFoundError(
                    f"{target} on {device_class} has no baseline {wanted}.", remedy="`driftpin baseline list`."
                )
            self._append(conn, BaselineAction.REVERT, wanted, target, device_class, who=who, why=why)
            return None if row is None else Baseline.from_row(row)

    def _append(
        self,
        conn: Connection,
        action: BaselineAction,
        baseline_id: int | None,
        target: str,
        device_class: str,
        **words: str,
    ) -> None:
        values = {"action": action, "baseline_id": baseline_id, "target": target, "device_class": device_class}
        conn.execute(insert(EVENTS).values(at=self.access.now(), **values, **words))

    def current(self, target: str, device_class: str) -> Baseline | None:
        """What replays of the target on that device class are judged against now."""
        with self.access.read() as conn:
            row = _row(conn, _current(conn, target, device_class))
            return None if row is None else Baseline.from_row(row)

    def get(self, baseline_id: int) -> Baseline:
        """The baseline with that id; raises `NotFoundError`."""
        with self.access.read() as conn:
            row = _row(conn, baseline_id)
        if row is None:
            raise NotFoundError(f"There is no baseline {baseline_id}.", remedy="`driftpin baseline list` names them.")
        return Baseline.from_row(row)

    def bundle(self, baseline: Baseline) -> dict[str, Any]:
        """The bundle as it was blessed."""
        bundle: dict[str, Any] = json.loads(self.blobs.get(baseline.bundle))
        return bundle

    def list(self, target: str | None = None) -> Sequence[Baseline]:
        """Newest first, of one target or of all."""
        query = select(TABLE).order_by(TABLE.c.id.desc())
        return [Baseline.from_row(row) for row in self._rows(_of(query, TABLE.c.target, target))]

    def events(self, target: str | None = None) -> Sequence[BaselineEvent]:
        """The audit trail, oldest first."""
        query = select(EVENTS).order_by(EVENTS.c.id)
        return [BaselineEvent.from_row(row) for row in self._rows(_of(query, EVENTS.c.target, target))]

    def _rows(self, query: Select[Any]) -> Sequence[RowMapping]:
        with self.access.read() as conn:
            return list(conn.execute(query).mappings())


def _of(query: Select[Any], column: Any, target: str | None) -> Select[Any]:
    return query if target is None else query.where(column == target)


def _blessable(conn: Connection, target: str, device_class: str, replay_id: str) -> RowMapping:
    replays = tables.replays
    row = conn.execute(select(replays).where(replays.c.id == replay_id)).mappings().first()
    if row is None:
        raise NotFoundError(f"There is no replay {replay_id}.", remedy="`driftpin replays` lists them.")
    if row["status"] != ReplayStatus.FINISHED:
        raise BlessError(f"Replay {replay_id} is {row['status']}.", remedy="Bless a finished replay.")
    if row["environment"] is None:
        raise BlessError(f"Replay {replay_id} does not say in what environment it ran.")
    if (row["target"], row["device_class"]) != (target, device_class):
        was = f"{row['target']} on {row['device_class']}"
        raise BlessError(f"Replay {replay_id} is of {was}, not of {target} on {device_class}.")
    return row


def _last_number(conn: Connection, target: str, device_class: str) -> int:
    mine = (TABLE.c.target == target, TABLE.c.device_class == device_class)
    return conn.scalar(select(func.max(TABLE.c.number)).where(*mine)) or 0


def _current(conn: Connection, target: str, device_class: str) -> int | None:
    mine = (EVENTS.c.target == target, EVENTS.c.device_class == device_class)
    return conn.scalar(select(EVENTS.c.baseline_id).where(*mine).order_by(EVENTS.c.id.desc()).limit(1))


def _row(conn: Connection, baseline_id: int | None) -> RowMapping | None:
    if baseline_id is None:
        return None
    return conn.execute(select(TABLE).where(TABLE.c.id == baseline_id)).mappings().first()
