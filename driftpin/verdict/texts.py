"""How many texts changed, beside how many rounding alone would have changed. Pure.

The baseline's perturbed scores say of every canary in how many seeds some arg-max moved: there its greedy text would
have parted. That number stands beside the count, for people; `crowd.py` draws the conclusions.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftpin.comparison.facts import Comparison
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.verdict.floors import Floors


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Canaries by whether their greedy text, decoded alone, is the baseline's."""

    decoded: int  # on both sides, asked and declared alike
    changed: int
    by_rounding: float | None  # of the decoded ones, how many rounding alone changes; None: not measured at blessing


def texts_of(comparison: Comparison, floors: Floors | None) -> Texts | None:
    """None where no text was decoded on both sides."""
    decoded = decoded_canaries(comparison)
    if not decoded:
        return None
    shares = floors.parting if floors else {}
    measured = all(canary in shares for canary in decoded)
    changed = {t.key.canary for t in comparison.changed if t.divergence and counts(t.key)} & decoded
    return Texts(
        decoded=len(decoded),
        changed=len(changed),
        by_rounding=sum(shares[canary] for canary in decoded) if measured else None,
    )


def decoded_canaries(comparison: Comparison) -> frozenset[str]:
    """Canaries of which both sides decoded the same prompt, alone and under the same declaration."""
    moved = (t.key for t in comparison.changed if not t.prompt and not t.mismatched)
    return frozenset(key.canary for key in (*comparison.identical, *moved) if counts(key))


def counts(key: TraceKey) -> bool:
    """One execution per canary: its first decode alone."""
    return key.probe is Probe.DECODE and key.shape is Shape.ALONE and key.repeat == 0
