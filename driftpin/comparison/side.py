"""One side of a comparison: a manifest and the blobs that a comparison may need, already read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driftpin.suite.canary import Suite
from driftpin.trace.head import Head
from driftpin.trace.layers import Layers
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry, TraceSet


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """Blobs are by digest; only those of entries whose digests differ from the other side's need to be there."""

    suite: Suite
    traces: TraceSet
    heads: Mapping[str, Head] = field(default_factory=dict)
    layers: Mapping[str, Layers] = field(default_factory=dict)
    texts: Mapping[str, TraceText] = field(default_factory=dict)

    def head(self, entry: Entry) -> Head:
        """The head of a measured entry; KeyError where the caller did not read it."""
        return self.heads[entry.head or ""]

    def text(self, entry: Entry) -> TraceText:
        """The display copy of a measured entry."""
        return self.texts[entry.text or ""]

    def layers_of(self, entry: Entry) -> Layers | None:
        """The layers of an entry, None where it has none."""
        return self.layers[entry.layers] if entry.layers else None
