"""Column types that mean the same on SQLite and on PostgreSQL. Knows nothing of tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, String, Text
from sqlalchemy.types import TypeDecorator

from driftpin.canonical import canonical_json
from driftpin.errors import StoreError
from driftpin.store.text import DISPLAY_LIMIT, display_json, display_text

NAME_LIMIT = 200  # characters


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime in, the same instant in UTC out; a naive one is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; SQLite keeps no zone, so it gets the UTC wall clock."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise StoreError(f"The time {value.isoformat()} has no zone.", remedy="Pass an aware datetime.")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Back to an aware datetime."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class DisplayText(TypeDecorator[str]):
    """Text for eyes: whatever comes in is made storable."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Through `display_text`."""
        return None if value is None else display_text(value, DISPLAY_LIMIT)


class Name(TypeDecorator[str]):
    """Text that rows are found by: what cannot be kept as it is, is refused."""

    impl = String(NAME_LIMIT)
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The same string, or `StoreError`."""
        if value is not None and display_text(value, NAME_LIMIT) != value:
            shown = display_text(value, 60)
            raise StoreError(
                f"{shown!r} cannot be a name in the store.",
                remedy=f"Use at most {NAME_LIMIT} characters, without NUL or lone surrogates.",
            )
        return value


class CanonicalJson(TypeDecorator[Any]):
    """A JSON value as our own canonical text; what has no such form raises `CanonicalError`."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> str | None:
        """To text."""
        return None if value is None else canonical_json(value).decode("utf-8")

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Any:
        """Back."""
        return None if value is None else json.loads(value)


class DisplayJson(CanonicalJson):
    """Free-form JSON for eyes: odd text and non-finite numbers are made storable by `display_json`."""

    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> str | None:
        """To text."""
        return super().process_bind_param(display_json(value), dialect)
