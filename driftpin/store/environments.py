"""Environments by content. The hashed sections are one blob, the stable part of the context another.

Small facts that change with every replay belong on the replay's row (`Replays.set_environment`), not here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driftpin.canonical import canonical_json
from driftpin.environment.environment import Environment
from driftpin.store.blobs import Blobs
from driftpin.store.text import display_json


@dataclass(frozen=True)
class Environments:
    """Put and get."""

    blobs: Blobs

    def put(self, environment: Environment) -> str:
        """Store the three hashed sections, not the context; returns the digest of both values and unknowns' reasons."""
        return self.blobs.put(canonical_json(environment.hashed_to_json()), "environment")

    def put_context(self, context: Mapping[str, Any]) -> str:
        """Store a part of `Environment.context_to_json()`; odd text in it is made storable."""
        return self.blobs.put(canonical_json(display_json(context)), "context")

    def get(self, digest: str, context_digest: str | None = None) -> Environment:
        """The environment, with the stored context when its digest is given."""
        context = {} if context_digest is None else json.loads(self.blobs.get(context_digest))
        return Environment.from_json(json.loads(self.blobs.get(digest)), context)
