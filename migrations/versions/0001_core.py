"""Content, suites, targets, replays, baselines and comparisons.

Revision 0001, after None.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_blobs")),
    )
    op.create_table(
        "comparisons",
        sa.Column("set_a", sa.String(length=64), nullable=False),
        sa.Column("set_b", sa.String(length=64), nullable=False),
        sa.Column("version", sa.String(length=200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("set_a", "set_b", "version", name=op.f("pk_comparisons")),
    )
    op.create_table(
        "suites",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_suites")),
        sa.UniqueConstraint("name", "number", name=op.f("uq_suites_name_number")),
    )
    op.create_table(
        "target_revisions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("operations", sa.Text(), nullable=False),
        sa.Column("suite_name", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_target_revisions")),
        sa.UniqueConstraint("target", "number", name=op.f("uq_target_revisions_target_number")),
    )
    op.create_table(
        "target_usage",
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("target", name=op.f("pk_target_usage")),
    )
    op.create_table(
        "replays",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=20), nullable=False),
        sa.Column("revision_id", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.Column("suite_digest", sa.String(length=64), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("arm", sa.String(length=20), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("device", sa.String(length=200), nullable=False),
        sa.Column("device_class", sa.String(length=200), nullable=True),
        sa.Column("environment", sa.String(length=64), nullable=True),
        sa.Column("model_digest", sa.String(length=64), nullable=True),
        sa.Column("stack_digest", sa.String(length=64), nullable=True),
        sa.Column("behaviour_digest", sa.String(length=64), nullable=True),
        sa.Column("context", sa.String(length=64), nullable=True),
        sa.Column("volatile", sa.Text(), nullable=True),
        sa.Column("trace_set", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("purpose", sa.String(length=200), nullable=False),
        sa.Column("series", sa.String(length=200), nullable=True),
        sa.Column("due", sa.DateTime(timezone=True), nullable=True),
        sa.Column("baseline_id", sa.Integer(), nullable=True),
        sa.Column("verdict", sa.String(length=20), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["target_revisions.id"], name=op.f("fk_replays_revision_id_target_revisions")
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_replays")),
        sa.UniqueConstraint("id", name=op.f("uq_replays_id")),
        sa.UniqueConstraint("series", "due", name=op.f("uq_replays_series_due")),
    )
    op.create_index(op.f("ix_replays_status"), "replays", ["status"], unique=False)
    op.create_index(op.f("ix_replays_target_seq"), "replays", ["target", "seq"], unique=False)
    op.create_table(
        "baselines",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.Column("device_class", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("replay_id", sa.String(length=20), nullable=False),
        sa.Column("trace_set", sa.String(length=64), nullable=False),
        sa.Column("suite_digest", sa.String(length=64), nullable=False),
        sa.Column("environment", sa.String(length=64), nullable=False),
        sa.Column("bundle", sa.String(length=64), nullable=False),
        sa.Column("blessed_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("supersedes", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["replay_id"], ["replays.id"], name=op.f("fk_baselines_replay_id_replays")),
        sa.ForeignKeyConstraint(["supersedes"], ["baselines.id"], name=op.f("fk_baselines_supersedes_baselines")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baselines")),
        sa.UniqueConstraint("target", "device_class", "number", name=op.f("uq_baselines_target_device_class_number")),
    )
    op.create_table(
        "progress",
        sa.Column("replay_id", sa.String(length=20), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["replay_id"], ["replays.id"], name=op.f("fk_progress_replay_id_replays")),
        sa.PrimaryKeyConstraint("replay_id", "attempt", "key", name=op.f("pk_progress")),
    )
    op.create_table(
        "baseline_events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.Column("device_class", sa.String(length=200), nullable=False),
        sa.Column("action", sa.String(length=20), nullable=False),
        sa.Column("baseline_id", sa.Integer(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["baseline_id"], ["baselines.id"], name=op.f("fk_baseline_events_baseline_id_baselines")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baseline_events")),
    )
    op.create_index(
        op.f("ix_baseline_events_target_device_class_id"),
        "baseline_events",
        ["target", "device_class", "id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_table("baseline_events")
    op.drop_table("progress")
    op.drop_table("baselines")
    op.drop_table("replays")
    op.drop_table("target_usage")
    op.drop_table("target_revisions")
    op.drop_table("suites")
    op.drop_table("comparisons")
    op.drop_table("blobs")
