"""A verdict as a value: what is said, with its evidence and the next step. Knows no store and no clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from driftpin.comparison.facts import Divergence
from driftpin.settings.policy import Severity
from driftpin.verdict.crowd import Crowd
from driftpin.verdict.diagnosis import Diagnosis
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import CanaryVerdict, Outcome
from driftpin.verdict.place import Place
from driftpin.verdict.shift import Shift
from driftpin.verdict.texts import Texts


@dataclass(frozen=True, kw_only=True)
class FirstDivergence:
    """The first canary in suite order whose tokens part, and where."""

    canary: str
    probe: str
    shape: str
    divergence: Divergence
    limit: float | None = None  # F there, in logits; None: the baseline has no yardstick


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The opinion on one comparison under one policy."""

    kind: VerdictKind
    severity: Severity
    headline: str  # one line, complete in itself
    canaries: tuple[CanaryVerdict, ...] = ()
    first: FirstDivergence | None = None
    place: Place | None = None
    diagnosis: Diagnosis | None = None  # None: nothing changed
    texts: Texts | None = None  # None: nothing was decoded on both sides
    crowds: tuple[Crowd, ...] = ()  # counts of decodes held against what rounding did at blessing
    shift: Shift | None = None  # None: nothing was compared
    remarks: tuple[str, ...] = ()  # what the environment suggests, as sentences
    unseen: tuple[str, ...] = ()  # what could not be seen, as sentences

    @property
    def counts(self) -> dict[Outcome, int]:
        """Canaries by the outcome that names them."""
        return dict(Counter(canary.outcome for canary in self.canaries))
