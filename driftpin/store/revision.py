"""Which schema a database has, read without Alembic (whose import alone takes a third of the command line's budget).

Revisions are numbers, so that older and newer need no history.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from driftpin.errors import SchemaTooNewError, SchemaTooOldError, StoreError

HEAD = "0003"  # a test holds it to the newest file in migrations/versions
VERSION_TABLE = "driftpin_version"
UPGRADE = "Run `driftpin db upgrade`."


def read(conn: Connection) -> str | None:
    """The database's revision, None when it has none."""
    if not inspect(conn).has_table(VERSION_TABLE):
        return None
    row = conn.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).first()  # noqa: S608 - a constant
    return None if row is None else str(row[0])


def check(found: str | None, where: str) -> None:
    """Return if this driftpin can use the revision; raises `SchemaTooOldError` or `SchemaTooNewError`."""
    if found is None:
        raise SchemaTooOldError(f"The store {where} is empty.", remedy=UPGRADE)
    if found == HEAD:
        return
    if found.isdecimal() and int(found) < int(HEAD):
        raise SchemaTooOldError(f"The store {where} has schema {found}; this driftpin needs {HEAD}.", remedy=UPGRADE)
    raise SchemaTooNewError(
        f"The store {where} has schema {found[:20]}, which this driftpin does not know.",
        remedy="Install the driftpin that made it, or a newer one.",
    )


def refuse_foreign(conn: Connection, where: str) -> None:
    """Raise `StoreError` rather than write our tables into a SQLite file of something else."""
    if conn.dialect.name != "sqlite" or read(conn) is not None:
        return
    if set(inspect(conn).get_table_names()) - {VERSION_TABLE}:  # ours stays, empty, after a way down to nothing
        raise StoreError(f"{where} is a database of something else.", remedy="Check the store's url.")
