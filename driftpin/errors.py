"""The one family of errors that driftpin raises on purpose.

A message says what happened and to what; the remedy says what to do next. The command line prints both without a
traceback and exits with `exit_code`. This module knows nothing of the rest of driftpin.
"""

from __future__ import annotations

import inspect


class DriftpinError(Exception):
    """Something that driftpin needs does not hold."""

    exit_code = 2

    def __init__(self, message: str | None = None, *, remedy: str | None = None) -> None:
        self.message = message or inspect.cleandoc(type(self).__doc__ or "")
        self.remedy = remedy
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}" if self.remedy else self.message


class ConfigError(DriftpinError):
    """The configuration is not valid."""


class SuiteError(DriftpinError):
    """The suite is not valid."""


class CanonicalError(DriftpinError):
    """The value has no canonical form."""


class NotFoundError(DriftpinError):
    """Nothing is stored under that reference."""


class ModelError(DriftpinError):
    """The model cannot be loaded."""


class CannotMeasureError(DriftpinError):
    """This target cannot be measured here; nothing is said about drift."""


class ReplayFailedError(DriftpinError):
    """The replay failed before it had measured everything; nothing is said about drift."""


class ReplayInterruptedError(DriftpinError):
    """The replay was interrupted; what was recorded before is kept."""

    exit_code = 130


class StoreError(DriftpinError):
    """The store refused the operation."""


class SchemaTooOldError(StoreError):
    """The database is older than this driftpin can use; run `driftpin db upgrade`."""


class SchemaTooNewError(StoreError):
    """The database was made by a newer driftpin; install that version here."""


class CorruptBlobError(StoreError):
    """A stored blob does not match its digest."""


class StoreFullError(StoreError):
    """There is no space left where the store writes."""


class LateAttemptError(StoreError):
    """A newer attempt of this replay exists; the late result is refused."""


class BlessError(DriftpinError):
    """This replay cannot become a baseline."""
