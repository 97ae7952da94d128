"""The traces of one replay as a manifest of digests. Equal replays have equal sets, stored once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from driftpin.canonical import canonical_json, sha256_hex
from driftpin.trace.columns import reading
from driftpin.trace.head import Head
from driftpin.trace.health import Ill, ills
from driftpin.trace.layers import Layers
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.text import TraceText

KIND = "trace_set"


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """What one canary produced under one probe, in memory; `layers_absent` says why there are no layers."""

    key: TraceKey
    input_digest: str
    head: Head
    layers: Layers | None
    text: TraceText
    layers_absent: str | None = None

    def entry(self) -> Entry:
        """The manifest line of this trace."""
        return Entry(
            key=self.key,
            input_digest=self.input_digest,
            head=self.head.sha256,
            layers=None if self.layers is None else self.layers.sha256,
            text=self.text.sha256,
            layers_absent=self.layers_absent,
            ills=ills(self.head, self.layers),
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a manifest: digests of the blobs, or the reason why this execution was not measured."""

    key: TraceKey
    input_digest: str | None = None
    head: str | None = None
    layers: str | None = None
    text: str | None = None
    layers_absent: str | None = None
    unmeasured: str | None = None  # reason
    ills: tuple[Ill, ...] = ()  # what is wrong with the trace by itself, whatever it is compared with

    def to_json(self) -> dict[str, Any]:
        """As stored; absent parts are left out."""
        key = {"canary": self.key.canary, "probe": self.key.probe, "shape": self.key.shape, "repeat": self.key.repeat}
        parts = {name: getattr(self, name) for name in PARTS}
        known = {name: part for name, part in parts.items() if part is not None}
        return key | known | ({"ills": list(self.ills)} if self.ills else {})

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Entry:
        """As read."""
        key = TraceKey(
            canary=value["canary"],
            probe=Probe(value["probe"]),
            shape=Shape(value["shape"]),
            repeat=int(value["repeat"]),
        )
        ills = tuple(Ill(name) for name in value.get("ills", ()))
        return cls(key=key, ills=ills, **{name: value.get(name) for name in PARTS})

    @property
    def blobs(self) -> tuple[str, ...]:
        """Digests of the blobs this line needs."""
        return tuple(d for d in (self.head, self.layers, self.text) if d)


PARTS = ("input_digest", "head", "layers", "text", "layers_absent", "unmeasured")


@dataclass(frozen=True, kw_only=True)
class TraceSet:
    """The manifest: entries in the order of their keys."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> TraceSet:
        """Sort entries; two entries under one key raise ValueError."""
        ordered = tuple(sorted(entries, key=lambda entry: entry.key))
        if len({entry.key for entry in ordered}) != len(ordered):
            raise ValueError("two traces share one key")
        return cls(entries=ordered)

    def to_bytes(self) -> bytes:
        """The canonical uncompressed bytes."""
        return canonical_json({"kind": KIND, "entries": [entry.to_json() for entry in self.entries]})

    @property
    def digest(self) -> str:
        """The sha256 that names the set."""
        return sha256_hex(self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> TraceSet:
        """Read a manifest; raises `CorruptBlobError`."""
        with reading(KIND):
            body = json.loads(data)
            if body["kind"] != KIND:
                raise ValueError(f"it holds {body['kind']!r}")
            return cls.of(Entry.from_json(value) for value in body["entries"])

    def by_key(self) -> dict[TraceKey, Entry]:
        """Entries by key."""
        return {entry.key: entry for entry in self.entries}
