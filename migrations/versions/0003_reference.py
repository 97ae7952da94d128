"""Which native replay a reference replay stands beside.

Revision 0003, after 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("replays", sa.Column("beside", sa.String(length=20), nullable=True))
    op.create_index(op.f("ix_replays_beside"), "replays", ["beside"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_replays_beside"), table_name="replays")
    with op.batch_alter_table("replays") as table:
        table.drop_column("beside")
