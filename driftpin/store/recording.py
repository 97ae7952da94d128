"""What a worker writes while a replay runs, inside a transaction that `Replays` opened.

One progress row per execution, committed with its blobs, keeps everything that was recorded before a crash; sealing
turns the rows into a manifest. A statement that finds its attempt superseded changes nothing and raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from driftpin.canonical import digest_of
from driftpin.errors import LateAttemptError, NotFoundError, StoreError, StoreFullError
from driftpin.store import blobs, tables
from driftpin.store.access import insert_absent
from driftpin.store.blobs import Content
from driftpin.store.replay import ReplayStatus
from driftpin.store.text import display_text
from driftpin.trace import head, layers, text
from driftpin.trace.probe import TraceKey
from driftpin.trace.traceset import KIND, Entry, Trace, TraceSet

REPLAYS, PROGRESS, USAGE = tables.replays, tables.progress, tables.target_usage


def hold(
    conn: Connection,
    replay_id: str,
    attempt: int,
    values: Mapping[str, Any] | None = None,
    states: Sequence[ReplayStatus] = (ReplayStatus.RUNNING,),
) -> str:
    """Update the replay if the attempt still holds it, which locks its row; returns the target."""
    held = (REPLAYS.c.id == replay_id, REPLAYS.c.attempt == attempt, REPLAYS.c.status.in_(states))
    statement = update(REPLAYS).where(*held).values(dict(values or {"attempt": attempt}))
    target = conn.scalar(statement.returning(REPLAYS.c.target))
    if target is None:
        raise late(conn, replay_id, attempt)
    return str(target)


def late(conn: Connection, replay_id: str, attempt: int | None) -> StoreError | NotFoundError:
    """Why an update of a replay found no row."""
    row = conn.execute(select(REPLAYS.c.attempt, REPLAYS.c.status).where(REPLAYS.c.id == replay_id)).first()
    if row is None:
        return missing(replay_id)
    return LateAttemptError(
        f"Replay {replay_id} is {row.status} in attempt {row.attempt}; attempt {attempt or row.attempt} is refused.",
        remedy="Let this worker stop; it no longer holds the replay.",
    )


def missing(replay_id: str) -> NotFoundError:
    """The error for an id that no replay has."""
    return NotFoundError(f"There is no replay {display_text(replay_id, 60)}.", remedy="`driftpin replays` lists them.")


def contents(trace: Trace) -> list[Content]:
    """The blobs of a trace."""
    parts = [(head.KIND, trace.head.to_bytes()), (text.KIND, trace.text.to_bytes())]
    parts += [] if trace.layers is None else [(layers.KIND, trace.layers.to_bytes())]
    return [Content(kind=kind, plain=plain) for kind, plain in parts]


def charge(conn: Connection, target: str, parts: Sequence[Content], quota: int | None) -> None:
    """Write the blobs that are new and add their bytes to the target's account, unless that exceeds the quota."""
    new = blobs.absent(conn, parts)
    if not new:
        return
    added = sum(len(part.packed) for part in new)
    insert_absent(conn, USAGE, [{"target": target, "bytes": 0}])
    statement = update(USAGE).where(USAGE.c.target == target).values(bytes=USAGE.c.bytes + added)
    used = conn.execute(statement.returning(USAGE.c.bytes)).scalar_one()
    if quota is not None and used > quota:
        raise StoreFullError(
            f"Target {target} would hold {used} bytes; its quota is {quota}.",
            remedy="Raise the quota; what was recorded before is kept.",
        )
    blobs.write(conn, new)


def unmeasured(key: TraceKey, reason: str) -> Entry:
    """The manifest line of an execution that was not measured."""
    return Entry(key=key, unmeasured=display_text(reason))


def keep(conn: Connection, replay_id: str, attempt: int, entry: Entry) -> Entry:
    """Add the progress row; the same execution twice in one attempt is refused."""
    line = entry.to_json()
    key = digest_of([line[part] for part in ("canary", "probe", "shape", "repeat")])
    mine = (PROGRESS.c.replay_id == replay_id, PROGRESS.c.attempt == attempt, PROGRESS.c.key == key)
    if conn.scalar(select(PROGRESS.c.key).where(*mine)) is not None:
        raise StoreError(f"Replay {replay_id} has recorded {entry.key} already.")
    conn.execute(insert(PROGRESS).values(replay_id=replay_id, attempt=attempt, key=key, entry=line))
    return entry


def entries(conn: Connection, replay_id: str, attempt: int) -> list[Entry]:
    """What the attempt has recorded."""
    mine = (PROGRESS.c.replay_id == replay_id, PROGRESS.c.attempt == attempt)
    return [Entry.from_json(line) for line in conn.scalars(select(PROGRESS.c.entry).where(*mine))]


def seal(conn: Connection, replay_id: str, attempt: int) -> TraceSet | None:
    """Store the attempt's manifest and drop the replay's progress rows; None when nothing was recorded."""
    recorded = entries(conn, replay_id, attempt)
    conn.execute(delete(PROGRESS).where(PROGRESS.c.replay_id == replay_id))
    if not recorded:
        return None
    sealed = TraceSet.of(recorded)
    blobs.write(conn, [Content(kind=KIND, plain=sealed.to_bytes())])
    return sealed
