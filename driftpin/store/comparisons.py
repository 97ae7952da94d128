"""Comparisons already made: a cache by (set, set, comparator version). Knows nothing of what a comparison says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from driftpin.canonical import canonical_json
from driftpin.store import tables
from driftpin.store.access import Access, insert_absent
from driftpin.store.packed import pack, unpack
from driftpin.store.text import display_json

TABLE = tables.comparisons


@dataclass(frozen=True)
class Comparisons:
    """Get and put, in the order of the two sets."""

    access: Access

    def get(self, set_a: str, set_b: str, version: str) -> dict[str, Any] | None:
        """What was put, None if nothing was."""
        key = (TABLE.c.set_a == set_a, TABLE.c.set_b == set_b, TABLE.c.version == version)
        with self.access.read() as conn:
            row = conn.execute(select(TABLE.c.data, TABLE.c.size).where(*key)).first()
        if row is None:
            return None
        value: dict[str, Any] = json.loads(unpack(bytes(row.data), row.size, f"Comparison {set_a[:12]}"))
        return value

    def put(self, set_a: str, set_b: str, version: str, body: Mapping[str, Any]) -> None:
        """Keep a comparison; one that is there already stays."""
        data = canonical_json(display_json(body))
        row = {"set_a": set_a, "set_b": set_b, "version": version, "size": len(data), "data": pack(data)}
        with self.access.begin() as conn:
            insert_absent(conn, TABLE, [row])
