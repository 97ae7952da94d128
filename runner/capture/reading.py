"""Reading one fact without ever raising for it: the value, or `Unknown` with the reason. Knows no fact by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driftpin.environment.fact import Fact, Unknown

# What probing a library or a file raises when the thing is not there; anything else is a defect and shall be seen.
EXPECTED = (OSError, RuntimeError, AttributeError, ValueError, ImportError, LookupError, AssertionError)


def known_or_unknown(read: Callable[[], Any]) -> Fact:
    """What `read` returns, or why it could not be read."""
    try:
        return read()
    except EXPECTED as error:
        text = str(error).strip()
        detail = text.splitlines()[0] if text else "no further text"
        return Unknown(f"{type(error).__name__}: {detail}")
