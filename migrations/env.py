"""Alembic's entry: runs the scripts on the connection that `driftpin.store.schema` opened, and on no other."""

from alembic import context

from driftpin.store.revision import VERSION_TABLE
from driftpin.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite alters a table by building it anew
    transactional_ddl=True,  # both databases can, once BEGIN is ours
)
with context.begin_transaction():
    context.run_migrations()
