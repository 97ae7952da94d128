"""Canonical bytes and their sha256: the identity of everything that driftpin stores by content.

JSON follows RFC 8785 (through the `rfc8785` library). It has no NaN and no integer beyond 2^53: callers write
64-bit integers with `hex64` and floats that may be non-finite with `json_float`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import rfc8785

from driftpin.errors import CanonicalError

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def canonical_json(value: Any) -> bytes:
    """Bytes of `value` under RFC 8785; raises `CanonicalError` for what has no such form (NaN, lone surrogates)."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise CanonicalError(f"The value has no canonical JSON form: {error}.") from error


def sha256_hex(data: bytes) -> str:
    """The sha256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """The sha256 of the canonical JSON of `value`."""
    return sha256_hex(canonical_json(value))


def hex64(number: int) -> str:
    """An unsigned 64-bit integer as 16 hex digits, the only form in which JSON may hold one."""
    return f"{number & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def json_float(number: float) -> float | str:
    """A float that JSON can hold: finite ones as they are, others as one of the `NON_FINITE` names."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return float(number)


def float_from_json(value: float | str) -> float:
    """The inverse of `json_float`."""
    return NON_FINITE[value] if isinstance(value, str) else float(value)


def known_parts(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a stored value that this version's dataclass has: one release back reads what the next one wrote."""
    names = {part.name for part in fields(kind)}
    return {name: part for name, part in value.items() if name in names}
