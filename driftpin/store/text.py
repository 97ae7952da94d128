"""Text and free-form JSON made safe for every database: the display copy, never the record.

Knows nothing of tables. What must survive bit by bit (ids, outputs, prompts) lies in blobs instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftpin.canonical import json_float

DISPLAY_LIMIT = 4000  # characters


def display_text(value: str, limit: int = DISPLAY_LIMIT) -> str:
    """`value` as every database takes it: NUL as U+2400, lone surrogates as U+FFFD, at most `limit` characters."""
    safe = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value.replace("\0", "\u2400"))
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def display_json(value: Any) -> Any:
    """A JSON value with its strings made safe (not cut), its non-finite floats named and its keys made strings."""
    if isinstance(value, str):
        return display_text(value, max(len(value), 1))
    if isinstance(value, float):
        return json_float(value)
    if isinstance(value, Mapping):
        return {display_json(str(key)): display_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [display_json(part) for part in value]
    return value
