"""k of n: what counts as seen on a target that is known not to repeat itself bit by bit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from driftpin.verdict.outcome import Finding, Outcome

# What a single repeat may show by chance. A broken, invalid or unmeasured repeat needs no second witness.
VOTED = frozenset({Outcome.CHECK_CHANGED, Outcome.FLIP, Outcome.SHIFTED, Outcome.TIE_FLIP})


@dataclass(frozen=True, kw_only=True)
class Quorum:
    """A finding counts when `k` of a canary's `n` repeats show it."""

    k: int = 1
    n: int = 1

    @property
    def voting(self) -> bool:
        """Whether there is anything to vote about."""
        return self.n > 1


def voted(findings: Sequence[Finding], quorum: Quorum) -> list[Finding]:
    """One canary's findings, with those that too few repeats show turned into `numeric` and the count said."""
    if not quorum.voting:
        return list(findings)
    return [_voted(finding, findings, quorum) for finding in findings]


def _voted(finding: Finding, findings: Sequence[Finding], quorum: Quorum) -> Finding:
    if finding.outcome not in VOTED or finding.key is None:
        return finding
    seen = {f.key.repeat for f in findings if f.key and _same_witness(f, finding)}
    told = f"{len(seen)} of {quorum.n} repeats show it, {quorum.k} are needed"
    if len(seen) >= quorum.k:
        return finding.reworded(f"{{}}; {told}")
    said = finding.reworded(f"{finding.outcome.value} in too few repeats: {told}; {{}}")
    return replace(said, outcome=Outcome.NUMERIC)


def _same_witness(other: Finding, finding: Finding) -> bool:
    if other.key is None or finding.key is None:
        return False
    return (other.outcome, other.key.probe, other.key.shape) == (finding.outcome, finding.key.probe, finding.key.shape)
