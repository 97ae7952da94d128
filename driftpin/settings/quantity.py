"""Durations and sizes as people write them. Knows nothing of which key they stand under."""

from __future__ import annotations

import re
from typing import Any

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
LONGEST = 10 * 365 * SECONDS["d"]  # what date arithmetic can take without care

_DURATION = re.compile(r"(?:[0-9]{1,9}[smhd])+")
_SIZE = re.compile(r"([0-9]{1,9}) ?([KMGT]i?B|B)")


def seconds_of(text: Any) -> int:
    """Whole seconds of a duration like "30s", "45m", "1h30m" or "1d"; ValueError for anything else, zero included."""
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        raise ValueError('must be a duration like "30s", "45m", "1h" or "1d"')
    total = sum(int(number) * SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smhd])", text))
    if not 0 < total <= LONGEST:
        raise ValueError("must be longer than nothing and at most ten years")
    return total


def bytes_of(text: Any) -> int:
    """Bytes of a size like "200MB" (10^6) or "1GiB" (2^30); ValueError for anything else, zero included."""
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if not found or int(found[1]) == 0:
        raise ValueError('must be a size like "200MB" or "1GiB", more than nothing')
    return int(found[1]) * BYTES[found[2]]
