"""Driver errors as driftpin errors, each with what to do next. Knows nothing of tables.

No message shows a password: the URL is rendered with it hidden, and it is cut out of what the driver said.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError, StatementError

from driftpin.errors import CorruptBlobError, DriftpinError, StoreError, StoreFullError

SPACE = "Free some space or move the store; what was recorded before is kept."
NO_SPACE_LEFT = 1 << 20  # bytes: below this an I/O error is read as a full disk


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Raise what the database refuses as `StoreError` or one of its kinds, the cause kept."""
    try:
        yield
    except StatementError as error:
        if isinstance(error.orig, DriftpinError):
            raise error.orig from None
        raise _translate(error, url) from error
    except SQLAlchemyError as error:
        raise StoreError(f"The store {shown(url)} failed: {_said(error, url)}.") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFullError(f"There is no space left for {shown(url)}.", remedy=SPACE) from error
        raise


def shown(url: URL) -> str:
    """The URL for people: no password, and none of those that libpq also takes from the query."""
    query = {name: "***" if "password" in name.lower() else value for name, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)


def _translate(error: StatementError, url: URL) -> StoreError:
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite(error.orig, url)
    lost = isinstance(error, DBAPIError) and (error.connection_invalidated or isinstance(error, OperationalError))
    return _postgres(error, url, lost=lost)


def _sqlite(error: sqlite3.Error, url: URL) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code of an extended one
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _disk_is_full(url)):
        return StoreFullError(f"There is no space left for {shown(url)}.", remedy=SPACE)
    message, remedy = SQLITE.get(code, (f"failed: {_said(error, url)}", "Run `driftpin db check`."))
    return StoreError(f"The store {shown(url)} {message}.", remedy=remedy)


SQLITE = {
    sqlite3.SQLITE_BUSY: ("is locked by another process", "Wait for it to finish, then try again."),
    sqlite3.SQLITE_LOCKED: ("is locked by another process", "Wait for it to finish, then try again."),
    sqlite3.SQLITE_NOTADB: ("is not a database", "Check the store's url; the file was left as it is."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "Restore it from a backup."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check that its folder exists and may be written."),
    sqlite3.SQLITE_READONLY: ("may not be written", "Check who owns the file and its folder."),
    sqlite3.SQLITE_IOERR: ("cannot be read or written", "Check the disk."),
}


def _disk_is_full(url: URL) -> bool:
    folder = Path(url.database or ".").absolute().parent
    return folder.is_dir() and shutil.disk_usage(folder).free < NO_SPACE_LEFT


def _postgres(error: StatementError, url: URL, *, lost: bool) -> StoreError:
    """By SQLSTATE, so that SQLite's users need not wait for psycopg to be imported."""
    said, state = _said(error, url), getattr(error.orig, "sqlstate", None)
    if state == DISK_FULL:
        return StoreFullError(f"There is no space left for {shown(url)}.", remedy=SPACE)
    if state in LOCKED:
        return StoreError(f"The store {shown(url)} is locked by another process.", remedy="Try again.")
    if lost and state is None:
        return StoreError(
            f"The store {shown(url)} cannot be reached: {said}.", remedy="Check that it runs, and its url."
        )
    return StoreError(f"The store {shown(url)} failed: {said}.", remedy="Check the server's log.")


DISK_FULL = "53100"
LOCKED = ("55P03", "40P01", "40001")  # not available, deadlock, serialisation


def _said(error: Exception, url: URL) -> str:
    """The first line of a driver's message, without the password."""
    text = (str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
    for secret in (url.password, *(value for name, value in url.query.items() if "password" in name.lower())):
        text = text.replace(str(secret), "***") if secret else text
    return text


def corrupt(what: str, why: str) -> CorruptBlobError:
    """The error for stored content that is not what it was."""
    return CorruptBlobError(f"{what} cannot be read: {why}.", remedy=RESTORE)


RESTORE = "Restore the store from a backup."
