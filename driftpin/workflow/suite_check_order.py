"""Does what ran before change a canary's bits? Two replays of a suite, in opposite orders, held together. Pure.

The second order is the reverse, not a shuffle: in reverse every canary runs after exactly those that ran behind it
before, so whatever one canary leaves behind for another shows in one of the two orders. A shuffle would leave about
half of all pairs as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from driftpin.suite.canary import Suite
from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.traceset import Entry, TraceSet

REVERSED = "reversed"


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """One canary whose bits differed between the orders: in which probes, and who ran before it in each."""

    canary: str
    probes: tuple[Probe, ...]
    before: tuple[str | None, str | None]  # in suite order, in reverse; None for the first
    repeats: bool  # in suite order once more it gave the same bits as the first time

    def to_json(self) -> dict[str, Any]:
        """As `driftpin suite check --format json` shows it."""
        return {
            "canary": self.canary,
            "probes": [probe.value for probe in self.probes],
            "before": self.before[0],
            "before_reversed": self.before[1],
            "repeats": self.repeats,
        }


def in_reverse(suite: Suite) -> Suite:
    """The same canaries, last one first."""
    return replace(suite, canaries=suite.canaries[::-1])


def differing(first: TraceSet, second: TraceSet) -> dict[str, tuple[Probe, ...]]:
    """By canary, the probes whose ordinary execution left other bits: prompt, tokens, logits or layers."""
    old, new = (_ordinary(traces.entries) for traces in (first, second))
    found: dict[str, tuple[Probe, ...]] = {}
    for key in sorted(old.keys() | new.keys()):
        if _bits(old.get(key)) != _bits(new.get(key)):
            found[key.canary] = (*found.get(key.canary, ()), key.probe)
    return found


def compared(first: TraceSet) -> int:
    """How many executions the two orders have in common."""
    return len(_ordinary(first.entries))


def dependences(
    suite: Suite, reversed_differs: Mapping[str, tuple[Probe, ...]], again_differs: Mapping[str, tuple[Probe, ...]]
) -> tuple[Dependence, ...]:
    """One for each canary that differed in reverse; `again_differs` are those that differed in suite order, too."""
    place = {canary: index for index, canary in enumerate(suite.ids)}
    return tuple(
        Dependence(
            canary=canary,
            probes=reversed_differs[canary],
            before=(_at(suite.ids, place[canary] - 1), _at(suite.ids, place[canary] + 1)),
            repeats=canary not in again_differs,
        )
        for canary in suite.ids
        if canary in reversed_differs
    )


def order_findings(found: Iterable[Dependence], cause: str | None) -> Iterator[Finding]:
    """A warning for each; `cause` is what the model's configuration makes likely, as a sentence."""
    for one in found:
        probes = " and ".join(probe.value for probe in one.probes)
        yield _depends(one, probes, cause) if one.repeats else _unrepeatable(one, probes)


def _depends(one: Dependence, probes: str, cause: str | None) -> Finding:
    after, reverse = (f"after {name!r}" if name else "first of all" for name in one.before)
    why = cause or "Something is kept between prompts: a cache, a remembered length, a lazily chosen kernel."
    return Finding(
        kind=FindingKind.ORDER_DEPENDENT,
        level=Level.WARNING,
        sentence=f"The bits of {one.canary!r} ({probes}) depend on what ran before: {after} they are others than "
        f"{reverse} in the reversed suite.",
        remedy=f"{why} Until that is mended, adding, removing or moving a canary may look like drift: keep the order.",
        canaries=(one.canary,),
    )


def _unrepeatable(one: Dependence, probes: str) -> Finding:
    return Finding(
        kind=FindingKind.UNREPEATABLE,
        level=Level.WARNING,
        sentence=f"The bits of {one.canary!r} ({probes}) differ between two fresh processes even in the same order.",
        remedy="No order is to blame: this target does not repeat itself. Look at its threads, devices and kernels.",
        canaries=(one.canary,),
    )


def _ordinary(entries: Iterable[Entry]) -> dict[TraceKey, Entry]:
    return {e.key: e for e in entries if e.key.shape is Shape.ALONE and e.key.repeat == 0}


def _bits(entry: Entry | None) -> tuple[str | None, ...]:
    return (None, None, "absent") if entry is None else (entry.head, entry.layers, entry.unmeasured)


def _at(names: tuple[str, ...], index: int) -> str | None:
    return names[index] if 0 <= index < len(names) else None
