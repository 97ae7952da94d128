"""Which canaries a page draws in full, which it lists and which it only counts. Words come from the JSON body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftpin.verdict.outcome import Outcome

RANK = {outcome.value: rank for rank, outcome in enumerate(Outcome)}
QUIET = Outcome.IDENTICAL.value


@dataclass(frozen=True, kw_only=True)
class CanaryLine:
    """One canary that is not identical: its words and the movement of its executions."""

    number: int  # from 0, in the order of the page; part of ids, which may not hold what a canary is called
    name: str
    outcome: str
    others: tuple[str, ...]  # further outcomes that hold
    findings: tuple[Mapping[str, Any], ...]
    movements: tuple[Mapping[str, Any], ...]

    @property
    def why(self) -> str | None:
        """The naming finding's sentence."""
        why = self.findings[0]["why"] if self.findings else None
        return None if why is None else str(why)


def changed_canaries(body: Mapping[str, Any], wanted: Sequence[str] = ()) -> tuple[CanaryLine, ...]:
    """Everything but the identical ones: wanted ones first, then the gravest outcome, then suite order."""
    moved: dict[str, list[Mapping[str, Any]]] = {}
    for one in body["movement"]:
        moved.setdefault(one["execution"].rsplit("/", 3)[0], []).append(one)
    notable = [(name, told) for name, told in body["outcomes"].items() if told["outcome"] != QUIET]
    notable.sort(key=lambda pair: (pair[0] not in wanted, RANK.get(pair[1]["outcome"], len(RANK))))
    return tuple(
        CanaryLine(
            number=number,
            name=name,
            outcome=told["outcome"],
            others=tuple(word for word in told["all"] if word != told["outcome"]),
            findings=tuple(told["findings"]),
            movements=tuple(moved.get(name, ())),
        )
        for number, (name, told) in enumerate(notable)
    )


def identical_canaries(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the canaries that nothing is to be said of."""
    return tuple(name for name, told in body["outcomes"].items() if told["outcome"] == QUIET)


def counts(body: Mapping[str, Any]) -> tuple[tuple[str, int, float], ...]:
    """(outcome, canaries, percent) in order of gravity."""
    counted = Counter(told["outcome"] for told in body["outcomes"].values())
    total = sum(counted.values()) or 1
    ordered = sorted(counted, key=lambda word: RANK.get(word, len(RANK)))
    return tuple((word, counted[word], round(100.0 * counted[word] / total, 3)) for word in ordered)
