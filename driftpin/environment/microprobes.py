"""The microprobes' word on two environments. It never says "computes alike": only shapes that were tried were seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from driftpin.environment.environment import Environment
from driftpin.environment.fact import Unknown

SEEN = "no difference seen at these shapes"


class ProbeWord(StrEnum):
    """What fixed operators at the model's own shapes tell."""

    NO_DIFFERENCE_SEEN = "no_difference_seen"  # at these shapes; other shapes were not tried
    SOMETHING_ELSE = "something_else"  # at least one operator gave other bits
    UNKNOWN = "unknown"  # nothing could be compared


@dataclass(frozen=True, kw_only=True)
class Microprobes:
    """The word, the operators that gave other bits, and a sentence."""

    word: ProbeWord
    sentence: str
    operators: tuple[str, ...] = ()  # as "linear.m1": operator and shape

    def to_json(self) -> dict[str, Any]:
        """As documented under `attribution`."""
        return {"word": self.word.value, "sentence": self.sentence, "operators": list(self.operators)}

    @classmethod
    def of(cls, old: Environment, new: Environment) -> Microprobes:
        """From the behaviour section of both."""
        a, b = old.behaviour, new.behaviour
        if not a or not b:
            return cls(word=ProbeWord.UNKNOWN, sentence=f"microprobes: unknown, {_lacking(not a, not b)} ran none")
        before, after = old.stack.get("dtype"), new.stack.get("dtype")
        if before != after:
            return cls(word=ProbeWord.UNKNOWN, sentence="microprobes: unknown, they ran in two number formats")
        both = [name for name in sorted(a.keys() & b.keys()) if not _unknown(a[name]) and not _unknown(b[name])]
        open_ = sorted((a.keys() | b.keys()) - set(both))
        moved = tuple(name for name in both if a[name] != b[name])
        rest = f"; not compared: {_grouped(open_)}" if open_ else ""
        if moved:
            said = "everything probed" if len(moved) == len(both) else _grouped(moved)
            return cls(
                word=ProbeWord.SOMETHING_ELSE,
                sentence=f"microprobes: compute something else: {said}{rest}",
                operators=moved,
            )
        if not both:
            return cls(word=ProbeWord.UNKNOWN, sentence=f"microprobes: unknown, {_reason(old, new)}")
        return cls(word=ProbeWord.NO_DIFFERENCE_SEEN, sentence=f"microprobes: {SEEN}{rest}")


def _unknown(fact: object) -> bool:
    return isinstance(fact, Unknown)


def _lacking(baseline: bool, candidate: bool) -> str:
    return "both sides" if baseline and candidate else "the baseline" if baseline else "the candidate"


def _reason(old: Environment, new: Environment) -> str:
    reasons = [fact.reason for env in (old, new) for fact in env.behaviour.values() if isinstance(fact, Unknown)]
    return reasons[0] if reasons else "the two sides probed different operators"


def _grouped(names: Sequence[str]) -> str:
    """ "linear.m1", "linear.m64", "softmax.b4" as "linear m1 m64, softmax b4"."""
    shapes: dict[str, list[str]] = {}
    for name in names:
        operator, _, shape = name.partition(".")
        shapes.setdefault(operator, []).append(shape)
    return ", ".join(" ".join([operator, *found]).strip() for operator, found in shapes.items())
