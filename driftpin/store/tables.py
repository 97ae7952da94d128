"""The tables, as SQLAlchemy Core. Knows nothing of what is done with them; `migrations/` must build exactly these."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

from driftpin.store.types import CanonicalJson, DisplayJson, DisplayText, Name, UtcDateTime

CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=CONVENTION)

DIGEST = String(64)  # sha256 in hex
WORD = String(20)  # a member of an enum

blobs = Table(
    "blobs",
    metadata,
    Column("sha256", DIGEST, primary_key=True),  # of the uncompressed canonical bytes
    Column("kind", WORD, nullable=False),
    Column("size", BigInteger, nullable=False),  # bytes, uncompressed
    Column("data", LargeBinary, nullable=False),  # one zstd frame
)

suites = Table(
    "suites",
    metadata,
    Column("digest", DIGEST, primary_key=True),  # names the blob with the body, too
    Column("name", Name, nullable=False),
    Column("number", Integer, nullable=False),  # counts from 1 per name
    Column("turn", Integer, nullable=False),  # the highest of a name is the suite in use
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("name", "number"),
)

target_revisions = Table(
    "target_revisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("target", Name, nullable=False),
    Column("number", Integer, nullable=False),  # counts from 1 per target
    Column("recipe", CanonicalJson, nullable=False),
    Column("operations", CanonicalJson, nullable=False),
    Column("suite_name", Name, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("target", "number"),
)

target_usage = Table(
    "target_usage",
    metadata,
    Column("target", Name, primary_key=True),
    Column("bytes", BigInteger, nullable=False),  # compressed bytes of the blobs that its replays brought in
)

replays = Table(
    "replays",
    metadata,
    Column("seq", Integer, primary_key=True),  # order of creation
    Column("id", String(20), nullable=False, unique=True),
    Column("revision_id", ForeignKey("target_revisions.id"), nullable=False),
    Column("target", Name, nullable=False),
    Column("suite_digest", DIGEST, nullable=False),
    Column("plan", CanonicalJson, nullable=False),
    Column("arm", WORD, nullable=False),
    Column("status", WORD, nullable=False),
    Column("reason", DisplayText),
    Column("attempt", Integer, nullable=False),  # counts from 1
    Column("host", Name, nullable=False),
    Column("device", Name, nullable=False),
    Column("device_class", Name),
    Column("environment", DIGEST),
    Column("model_digest", DIGEST),
    Column("stack_digest", DIGEST),
    Column("behaviour_digest", DIGEST),
    Column("context", DIGEST),
    Column("volatile", DisplayJson),
    Column("trace_set", DIGEST),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("heartbeat_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("purpose", Name, nullable=False),
    Column("series", Name),
    Column("due", UtcDateTime),
    Column("baseline_id", Integer),
    Column("verdict", WORD),
    Column("summary", DisplayJson),
    Column("beside", String(20), index=True),  # the native replay that a reference replay stands beside
    UniqueConstraint("series", "due"),  # makes a duplicate tick harmless; rows without a due time are free
    Index(None, "target", "seq"),
    Index(None, "status"),
)

progress = Table(
    "progress",
    metadata,
    Column("replay_id", ForeignKey("replays.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("key", DIGEST, primary_key=True),  # of the trace key
    Column("entry", CanonicalJson, nullable=False),
)

baselines = Table(
    "baselines",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("target", Name, nullable=False),
    Column("device_class", Name, nullable=False),
    Column("number", Integer, nullable=False),  # counts from 1 per target and device class
    Column("replay_id", ForeignKey("replays.id"), nullable=False),
    Column("trace_set", DIGEST, nullable=False),
    Column("suite_digest", DIGEST, nullable=False),
    Column("environment", DIGEST, nullable=False),
    Column("bundle", DIGEST, nullable=False),
    Column("blessed_by", DisplayText, nullable=False),
    Column("reason", DisplayText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("supersedes", ForeignKey("baselines.id")),
    UniqueConstraint("target", "device_class", "number"),
)

baseline_events = Table(
    "baseline_events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("target", Name, nullable=False),
    Column("device_class", Name, nullable=False),
    Column("action", WORD, nullable=False),
    Column("baseline_id", ForeignKey("baselines.id")),  # current from here on; none after the first was reverted
    Column("who", DisplayText, nullable=False),
    Column("why", DisplayText, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Index(None, "target", "device_class", "id"),
)

comparisons = Table(
    "comparisons",
    metadata,
    Column("set_a", DIGEST, primary_key=True),
    Column("set_b", DIGEST, primary_key=True),
    Column("version", Name, primary_key=True),  # of the comparator
    Column("size", BigInteger, nullable=False),  # bytes, uncompressed
    Column("data", LargeBinary, nullable=False),  # canonical JSON, one zstd frame
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", DIGEST, nullable=False),
    Column("target", Name, nullable=False),
    Column("kind", WORD, nullable=False),
    Column("state", WORD, nullable=False),
    Column("severity", WORD, nullable=False),
    Column("title", DisplayText, nullable=False),
    Column("body", DisplayJson, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("resolved_at", UtcDateTime),
    Column("first_bad", String(20)),  # replay ids
    Column("last_good", String(20)),
    Column("count", Integer, nullable=False),  # times that the cause was seen
)
Index(
    "uq_incidents_open_key",
    incidents.c.key,
    unique=True,
    sqlite_where=text("state <> 'resolved'"),
    postgresql_where=text("state <> 'resolved'"),
)

incident_events = Table(
    "incident_events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("incident_id", ForeignKey("incidents.id"), nullable=False, index=True),
    Column("kind", WORD, nullable=False),
    Column("payload", DisplayJson, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("event_id", ForeignKey("incident_events.id"), nullable=False),
    Column("channel", Name, nullable=False),
    Column("idempotency_key", String(40), nullable=False, unique=True),
    Column("state", WORD, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", UtcDateTime, nullable=False),
    Column("last_error", DisplayText),
    UniqueConstraint("event_id", "channel"),
    Index(None, "state", "next_at"),
)

schedules = Table(
    "schedules",
    metadata,
    Column("series", Name, primary_key=True),
    Column("due", UtcDateTime, nullable=False),  # the last tick that was handed out
)
