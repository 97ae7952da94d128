"""How long to wait before the next attempt. Pure: chance comes in as a number."""

from __future__ import annotations

from datetime import timedelta

FIRST = timedelta(seconds=5)
LONGEST = timedelta(hours=1)
LONGEST_ASKED = timedelta(hours=6)  # of a receiver's Retry-After
ATTEMPTS = 120  # about five days


def pause(attempt: int, chance: float, asked_seconds: float | None = None) -> timedelta:
    """After the given failed attempt (from 1): doubles up to an hour, times 0.5 to 1 by `chance` in [0, 1).

    Never shorter than the receiver asked for, up to six hours.
    """
    doubled = min(FIRST * (1 << min(attempt - 1, 20)), LONGEST)
    own = doubled * (0.5 + 0.5 * chance)
    asked = min(timedelta(seconds=asked_seconds or 0), LONGEST_ASKED)
    return max(own, asked)
