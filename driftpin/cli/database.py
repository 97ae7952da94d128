"""`driftpin db upgrade|check|size|backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftpin.cli.out import Format, FormatOption, console, emit, plain
from driftpin.cli.session import current

app = typer.Typer(help="The store.", no_args_is_help=True)

SIZE, CHECK = "driftpin.db_size/1", "driftpin.db_check/1"


@app.command()
def upgrade(context: typer.Context) -> None:
    """Bring the database to the schema of this driftpin."""
    from driftpin.store import schema  # noqa: PLC0415 - start-up time

    url = current(context).config().store_url()
    before = schema.current(url)
    schema.upgrade(url)
    console().print(f"schema {before or 'none'} -> {schema.current(url)}")


@app.command()
def check(context: typer.Context, form: FormatOption = Format.TEXT) -> None:
    """Open the store, and read every blob back against its digest."""
    session = current(context)
    with session.store(session.config()) as store:
        count = store.blobs.check()
        body = {"schema": CHECK, "store": store.url, "blobs": count}
    emit(form, body, lambda c: c.print(f"{plain(body['store'])}: {count} blobs, all as their digests say"))


@app.command()
def size(context: typer.Context, form: FormatOption = Format.TEXT) -> None:
    """Rows and bytes by table."""
    session = current(context)
    with session.store(session.config()) as store:
        tables = store.size()
    body = {"schema": SIZE, "tables": {name: {"rows": r, "bytes": b} for name, (r, b) in tables.items()}}

    def text(c):  # type: ignore[no-untyped-def]
        for name, (rows, used) in tables.items():
            c.print(f"{name:<24} {rows:>10} rows {used:>14} bytes")

    emit(form, body, text)


@app.command()
def backup(context: typer.Context, path: Annotated[Path, typer.Argument(help="a new file")]) -> None:
    """Copy a SQLite store while others use it."""
    session = current(context)
    with session.store(session.config()) as store:
        store.backup(path)
    console().print(f"wrote {plain(path)}")
