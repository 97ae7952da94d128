"""Traces read back from their blobs. Knows nothing of replays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from driftpin.errors import NotFoundError
from driftpin.store.blobs import Blobs
from driftpin.trace.head import Head
from driftpin.trace.layers import Layers
from driftpin.trace.probe import TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry, Trace, TraceSet


@dataclass(frozen=True)
class Traces:
    """Parts of a trace, one at a time or many at once; equal digests give one object."""

    blobs: Blobs

    def set(self, digest: str) -> TraceSet:
        """The manifest with that digest."""
        return TraceSet.from_bytes(self.blobs.get(digest))

    def head(self, entry: Entry) -> Head:
        """The head; raises `NotFoundError` for an execution that was not measured."""
        return Head.from_bytes(self.blobs.get(_measured(entry, entry.head)))

    def text(self, entry: Entry) -> TraceText:
        """The display copy; raises `NotFoundError` for an execution that was not measured."""
        return TraceText.from_bytes(self.blobs.get(_measured(entry, entry.text)))

    def layers(self, entry: Entry) -> Layers | None:
        """The layers, or None where there are none (`entry.layers_absent` says why)."""
        return None if entry.layers is None else Layers.from_bytes(self.blobs.get(entry.layers))

    def heads(self, entries: Iterable[Entry]) -> dict[TraceKey, Head]:
        """Heads of the measured entries."""
        digests = {entry.key: entry.head for entry in entries if entry.head}
        read = {sha256: Head.from_bytes(data) for sha256, data in self.blobs.get_many(digests.values()).items()}
        return {key: read[sha256] for key, sha256 in digests.items()}

    def texts(self, entries: Iterable[Entry]) -> dict[TraceKey, TraceText]:
        """Display copies of the measured entries."""
        digests = {entry.key: entry.text for entry in entries if entry.text}
        read = {sha256: TraceText.from_bytes(data) for sha256, data in self.blobs.get_many(digests.values()).items()}
        return {key: read[sha256] for key, sha256 in digests.items()}

    def trace(self, entry: Entry) -> Trace:
        """Everything of one measured execution."""
        return Trace(
            key=entry.key,
            input_digest=_measured(entry, entry.input_digest),
            head=self.head(entry),
            layers=self.layers(entry),
            text=self.text(entry),
            layers_absent=entry.layers_absent,
        )


def _measured(entry: Entry, part: str | None) -> str:
    if part is None:
        raise NotFoundError(f"{entry.key} was not measured: {entry.unmeasured or 'no reason was kept'}.")
    return part
