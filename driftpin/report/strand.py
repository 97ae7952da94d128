"""One execution as both sides ran it, position by position, read from the store. States facts only."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from driftpin.comparison.facts import Comparison, Divergence, TraceComparison
from driftpin.store import Store
from driftpin.trace.head import Head
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry
from driftpin.workflow.assess import Assessment


@dataclass(frozen=True, kw_only=True, eq=False)
class Voice:
    """What one side put out: N ids, N pieces (none where text is hidden), N log-probabilities, N margins."""

    ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    logprob: NDArray[np.float64]
    margin: NDArray[np.float64]

    @classmethod
    def of(cls, head: Head, text: TraceText | None) -> Voice:
        """From the two blobs."""
        return cls(
            ids=tuple(int(i) for i in head.output_ids),
            pieces=() if text is None else text.pieces,
            logprob=head.logprob.astype(np.float64),
            margin=head.margin.astype(np.float64),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Strand:
    """Both voices of one changed execution; `text` is False where nothing may be quoted."""

    key: TraceKey
    fact: TraceComparison
    baseline: Voice
    candidate: Voice
    text: bool

    @property
    def divergence(self) -> Divergence | None:
        """Where ids part; None where they agree, or were not asked the same."""
        return self.fact.divergence

    @property
    def shared(self) -> int:
        """Positions with the same context and the same token."""
        length = min(len(self.baseline.ids), len(self.candidate.ids))
        return length if self.divergence is None else self.divergence.position

    @property
    def delta(self) -> NDArray[np.float64]:
        """|Δ log-prob| at the shared positions, in nats."""
        count = self.shared
        with np.errstate(invalid="ignore"):  # two infinite numbers have no difference, and that is shown
            return np.abs(self.candidate.logprob[:count] - self.baseline.logprob[:count])


@dataclass(frozen=True, kw_only=True, eq=False)
class Strands:
    """Reads the strands of one canary at a time, so that a page over a thousand canaries holds a few of them."""

    store: Store
    entries: tuple[dict[TraceKey, Entry], dict[TraceKey, Entry]]
    changed: dict[str, tuple[TraceComparison, ...]]
    text: bool

    @classmethod
    def of(cls, store: Store, found: Assessment, *, text: bool) -> Strands:
        """Of an assessment; without a baseline there are none."""
        if found.baseline is None or found.comparison is None:
            return cls(store=store, entries=({}, {}), changed={}, text=text)
        sets = (store.traces.set(side.trace_set).by_key() for side in (found.baseline, found.candidate))
        old, new = sets
        return cls(store=store, entries=(old, new), changed=_by_canary(found.comparison), text=text)

    def drawn(self, canary: str) -> tuple[Strand, ...]:
        """The first changed execution of each probe, alone before any other shape."""
        chosen: dict[Probe, TraceComparison] = {}
        for fact in sorted(self.changed.get(canary, ()), key=_plainest):
            if not fact.prompt and not fact.mismatched:
                chosen.setdefault(fact.key.probe, fact)
        return tuple(self._read(fact) for fact in chosen.values())

    def one(self, canary: str, probe: str, shape: str) -> Strand | None:
        """The first execution of that kind whose tokens part."""
        same = (f for f in self.changed.get(canary, ()) if (f.key.probe.value, f.key.shape.value) == (probe, shape))
        return next((self._read(fact) for fact in same if fact.divergence), None)

    def _read(self, fact: TraceComparison) -> Strand:
        old, new = self.entries[0][replace(fact.key, repeat=0)], self.entries[1][fact.key]
        return Strand(key=fact.key, fact=fact, baseline=self._voice(old), candidate=self._voice(new), text=self.text)

    def _voice(self, entry: Entry) -> Voice:
        return Voice.of(self.store.traces.head(entry), self.store.traces.text(entry) if self.text else None)


def _by_canary(comparison: Comparison) -> dict[str, tuple[TraceComparison, ...]]:
    found: dict[str, list[TraceComparison]] = {}
    for trace in comparison.changed:
        found.setdefault(trace.key.canary, []).append(trace)
    return {canary: tuple(traces) for canary, traces in found.items()}


def _plainest(fact: TraceComparison) -> tuple[bool, bool, int, str]:
    """Decode first, alone first, lowest repeat first."""
    key = fact.key
    return key.probe is not Probe.DECODE, key.shape is not Shape.ALONE, key.repeat, key.shape.value
