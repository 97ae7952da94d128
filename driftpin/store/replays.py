"""The life of replays: created, claimed, recorded, ended; and how they are found again.

Claims are conditional updates that count rows; what a worker writes carries its attempt, and a late one is refused.
Knows nothing of engines or verdicts.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, and_, or_, select, update

from driftpin.errors import NotFoundError, StoreError
from driftpin.store import recording, tables
from driftpin.store.access import Access, changed, insert_or_nothing
from driftpin.store.blobs import Blobs
from driftpin.store.environments import Environments
from driftpin.store.recording import hold
from driftpin.store.replay import ENDED, Replay, ReplayStatus
from driftpin.store.targets import TargetRevision
from driftpin.store.traces import Traces
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, TraceKey
from driftpin.trace.traceset import Entry, Trace, TraceSet

TABLE = tables.replays
CANDIDATES = 5  # named in a message about an ambiguous id


@dataclass(frozen=True)
class Replays:
    """Everything about replays but their traces' content, which `Traces` reads."""

    access: Access
    blobs: Blobs

    def create(
        self,
        revision: TargetRevision,
        suite_digest: str,
        plan: Plan,
        *,
        host: str,
        device: str,
        device_class: str | None = None,
        due: datetime | None = None,
        series: str | None = None,
        purpose: str = "manual",
        beside: str | None = None,
    ) -> Replay | None:
        """A queued replay; None when the series already has one for that due time."""
        if due is not None and series is None:
            raise StoreError("A replay with a due time needs a series.")
        row = {
            "revision_id": revision.id,
            "target": revision.target,
            "suite_digest": suite_digest,
            "plan": plan.to_json(),
            "arm": plan.arm,
            "status": ReplayStatus.QUEUED,
            "attempt": 1,
            "host": host,
            "device": device,
            "device_class": device_class,
            "created_at": self.access.now(),
            "purpose": purpose,
            "series": series,
            "due": due,
            "beside": beside,
        }
        with self.access.begin() as conn:
            return self._insert(conn, row)

    def _insert(self, conn: Connection, row: dict[str, Any]) -> Replay | None:
        """Two reasons may keep the row out: the same due time (None), or an id drawn twice (draw again)."""
        while True:
            replay_id = f"r-{secrets.token_hex(4)}"
            if _inserted(conn, {**row, "id": replay_id}):
                return Replay.from_row(conn.execute(_query().where(TABLE.c.id == replay_id)).mappings().one())
            same = select(TABLE.c.id).where(TABLE.c.series == row["series"], TABLE.c.due == row["due"])
            if row["due"] is not None and conn.scalar(same) is not None:
                return None

    # The life of one replay

    def claim(self, replay_id: str) -> int | None:
        """Start a queued replay; returns its attempt, or None when somebody else was first."""
        now = self.access.now()
        with self.access.begin() as conn:
            statement = (
                update(TABLE)
                .where(TABLE.c.id == replay_id, TABLE.c.status == ReplayStatus.QUEUED)
                .values(status=ReplayStatus.RUNNING, started_at=now, heartbeat_at=now)
                .returning(TABLE.c.attempt)
            )
            attempt: int | None = conn.scalar(statement)
            return attempt

    def requeue(self, replay_id: str, attempt: int | None = None) -> int:
        """Give up a running attempt and queue the next one, whose number is returned."""
        with self.access.begin() as conn:
            held = [TABLE.c.id == replay_id, TABLE.c.status == ReplayStatus.RUNNING]
            held += [] if attempt is None else [TABLE.c.attempt == attempt]
            values = {"status": ReplayStatus.QUEUED, "attempt": TABLE.c.attempt + 1}
            new = conn.scalar(update(TABLE).where(*held).values(values).returning(TABLE.c.attempt))
            if new is None:
                raise recording.late(conn, replay_id, attempt)
            return int(new)

    def touch(self, replay_id: str, attempt: int) -> None:
        """The heartbeat; raises `LateAttemptError`."""
        with self.access.begin() as conn:
            hold(conn, replay_id, attempt, {"heartbeat_at": self.access.now()})

    def record(self, replay_id: str, attempt: int, trace: Trace, quota_bytes: int | None = None) -> Entry:
        """Keep one trace at once; `StoreFullError` when its new bytes would exceed the target's quota."""
        parts = recording.contents(trace)
        self.blobs.prepare(parts)
        with self.access.begin() as conn:
            target = hold(conn, replay_id, attempt, {"heartbeat_at": self.access.now()})
            recording.charge(conn, target, parts, quota_bytes)
            return recording.keep(conn, replay_id, attempt, trace.entry())

    def record_unmeasured(self, replay_id: str, attempt: int, key: TraceKey, reason: str) -> Entry:
        """Keep that one execution was not measured, and why."""
        with self.access.begin() as conn:
            hold(conn, replay_id, attempt, {"heartbeat_at": self.access.now()})
            return recording.keep(conn, replay_id, attempt, recording.unmeasured(key, reason))

    def set_environment(
        self,
        replay_id: str,
        attempt: int,
        environment: str,
        context: str | None,
        volatile: Mapping[str, Any],
        device_class: str | None,
    ) -> None:
        """Say in what environment the replay runs: stored digests, and the small facts of this replay alone."""
        digests = Environments(self.blobs).get(environment).digests
        parts = {f"{section}_digest": digest for section, digest in digests.items()}
        facts = {"context": context, "volatile": dict(volatile), "device_class": device_class}
        values = {"environment": environment, **facts, **parts}
        with self.access.begin() as conn:
            hold(conn, replay_id, attempt, values)

    def finish(self, replay_id: str, attempt: int) -> TraceSet:
        """Seal everything that was recorded as the replay's trace set."""
        with self.access.begin() as conn:
            hold(conn, replay_id, attempt)
            sealed = recording.seal(conn, replay_id, attempt)
            if sealed is None:
                raise StoreError(f"Replay {replay_id} has recorded nothing.", remedy="Stop it with a reason instead.")
            ended = {"status": ReplayStatus.FINISHED, "finished_at": self.access.now()}
            hold(conn, replay_id, attempt, {"trace_set": sealed.digest, **ended})
            return sealed

    def stop(self, replay_id: str, attempt: int, status: ReplayStatus, reason: str) -> TraceSet | None:
        """End a queued or running replay early; what was recorded is sealed and returned, None if that is nothing."""
        if status not in ENDED or status is ReplayStatus.FINISHED:
            raise StoreError(f"A replay cannot be stopped as {status}.", remedy="Use failed, interrupted or skipped.")
        states = (ReplayStatus.QUEUED, ReplayStatus.RUNNING)
        with self.access.begin() as conn:
            hold(conn, replay_id, attempt, states=states)
            sealed = recording.seal(conn, replay_id, attempt)
            ended = {"status": status, "reason": reason, "finished_at": self.access.now()}
            hold(conn, replay_id, attempt, {"trace_set": sealed and sealed.digest, **ended}, states)
            return sealed

    def set_verdict(self, replay_id: str, baseline_id: int | None, verdict: str, summary: Mapping[str, Any]) -> None:
        """Keep what a comparison with that baseline came to."""
        values = {"baseline_id": baseline_id, "verdict": verdict, "summary": dict(summary)}
        with self.access.begin() as conn:
            if not changed(conn, update(TABLE).where(TABLE.c.id == replay_id).values(values)):
                raise recording.missing(replay_id)

    # Finding them again

    def get(self, replay_id: str) -> Replay:
        """The replay with exactly that id; raises `NotFoundError`."""
        found = self._select(_query().where(TABLE.c.id == replay_id))
        if not found:
            raise recording.missing(replay_id)
        return found[0]

    def find(self, prefix: str) -> Replay:
        """The one replay whose id begins so; `NotFoundError` for none, and for several with some of them named."""
        if not (prefix.isascii() and prefix.isprintable()):
            raise recording.missing(prefix)
        matches = TABLE.c.id.startswith(prefix.lower(), autoescape=True)
        found = self._select(_query().where(matches).order_by(TABLE.c.id).limit(CANDIDATES + 1))
        if not found:
            raise recording.missing(prefix)
        if len(found) > 1:
            named = ", ".join(replay.id for replay in found[:CANDIDATES]) + (" …" if len(found) > CANDIDATES else "")
            raise NotFoundError(f"Several replays begin with {prefix}: {named}.", remedy="Write more of the id.")
        return found[0]

    def last(
        self,
        target: str,
        status: ReplayStatus | None = ReplayStatus.FINISHED,
        device_class: str | None = None,
        arm: Arm | None = None,
        skipping: str | None = None,
    ) -> Replay | None:
        """The newest replay of a target, None if there is none; None as an argument means any.

        `skipping` is a purpose whose replays do not count.
        """
        wanted = {"status": status, "device_class": device_class, "arm": arm}
        query = _query().where(TABLE.c.target == target, *(TABLE.c[n] == v for n, v in wanted.items() if v is not None))
        query = query if skipping is None else query.where(TABLE.c.purpose != skipping)
        found = self._select(query.order_by(TABLE.c.seq.desc()).limit(1))
        return found[0] if found else None

    def list(
        self,
        target: str | None = None,
        limit: int = 50,
        status: ReplayStatus | None = None,
        series: str | None = None,
    ) -> Sequence[Replay]:
        """Newest first."""
        wanted = {"target": target, "status": status, "series": series}
        query = _query().where(*(TABLE.c[n] == v for n, v in wanted.items() if v is not None))
        return self._select(query.order_by(TABLE.c.seq.desc()).limit(limit))

    def beside(self, replay: Replay) -> Sequence[Replay]:
        """Reference replays run for a native one, or for one of the same target, traces and environment; newest first.

        Equal content in an equal environment is one measurement: it needs no second reference.
        """
        native = TABLE.alias()
        same = and_(native.c.trace_set == replay.trace_set, native.c.environment == replay.environment)
        mine = select(native.c.id).where(native.c.target == replay.target, or_(native.c.id == replay.id, same))
        return self._select(_query().where(TABLE.c.beside.in_(mine)).order_by(TABLE.c.seq.desc()))

    def stale(self, older_than: datetime) -> Sequence[Replay]:
        """Running replays whose last heartbeat is before that time, oldest first."""
        silent = (TABLE.c.status == ReplayStatus.RUNNING, TABLE.c.heartbeat_at < older_than)
        return self._select(_query().where(*silent).order_by(TABLE.c.heartbeat_at))

    def trace_set(self, replay: Replay) -> TraceSet:
        """The sealed manifest; `NotFoundError` where nothing was sealed."""
        if replay.trace_set is None:
            raise NotFoundError(
                f"Replay {replay.id} ({replay.status}) has no traces: {replay.reason or 'it has not ended'}."
            )
        return Traces(self.blobs).set(replay.trace_set)

    def recorded(self, replay: Replay) -> TraceSet:
        """What the current attempt of a running replay has recorded so far."""
        with self.access.read() as conn:
            return TraceSet.of(recording.entries(conn, replay.id, replay.attempt))

    def _select(self, query: Select[Any]) -> Sequence[Replay]:
        with self.access.read() as conn:
            return [Replay.from_row(row) for row in conn.execute(query).mappings()]


def _query() -> Select[Any]:
    revisions = tables.target_revisions
    return select(TABLE, revisions.c.number.label("revision_number")).join(revisions)


def _inserted(conn: Connection, row: dict[str, Any]) -> bool:
    statement = insert_or_nothing(conn, TABLE).values(row).returning(TABLE.c.seq)
    return conn.scalar(statement) is not None
