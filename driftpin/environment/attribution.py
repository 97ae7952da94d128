"""Because of what: the differing facts as suspects, after the model itself was ruled out or named.

Pure: two environments and their difference in, one value out. Knows nothing of what the replays computed, so a suspect
is what changed and could have done it, never a proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftpin.environment import ruling
from driftpin.environment.difference import Change, FactDifference
from driftpin.environment.environment import Environment, Equality, Section
from driftpin.environment.fact import fact_to_json
from driftpin.environment.microprobes import Microprobes, ProbeWord
from driftpin.environment.ruling import Matter, Ruling
from driftpin.environment.suspects import causes, ordered
from driftpin.environment.wording import reason, tell

NOTHING = "Nothing that was recorded differs, so no cause can be named"
DEVICE = "Model and stack are the same, but the microprobes compute something else: suspect the device"
FOLLOWED = {
    "tokenizer": "the tokenizer",
    "parameters": "what lies on the device (the weight files are the same)",
    "isa": "the instruction set in use",
}


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """What may have done it. `suspects` stand likeliest first and hold known differences only."""

    ruled: tuple[Ruling, ...]  # the model's parts, each same, changed or undetermined, before any stack fact
    suspects: tuple[FactDifference, ...]
    undetermined: tuple[FactDifference, ...]
    microprobes: Microprobes
    likeliest: str  # one sentence

    def to_json(self) -> dict[str, Any]:
        """As documented under `attribution`."""
        return {
            "likeliest": self.likeliest,
            "ruled": [one.to_json() for one in self.ruled],
            "suspects": [_suspect(fact) for fact in self.suspects],
            "undetermined": [_undetermined(fact) for fact in self.undetermined],
            "microprobes": self.microprobes.to_json(),
        }


def attribute(
    differences: Sequence[FactDifference], equalities: Mapping[Section, Equality], old: Environment, new: Environment
) -> Attribution:
    """Rule the model out or name it, then order what is left by how likely it changes numbers."""
    ruled = ruling.rule(differences, old, new)
    known = [f for f in differences if f.kind is not Change.UNDETERMINED and f.section is not Section.BEHAVIOUR]
    unknown = tuple(f for f in differences if f.kind is Change.UNDETERMINED)
    microprobes = Microprobes.of(old, new)
    suspects = ordered(known, ruled, microprobes)
    return Attribution(
        ruled=ruled,
        suspects=suspects,
        undetermined=unknown,
        microprobes=microprobes,
        likeliest=_likeliest(suspects, unknown, microprobes, ruled, equalities),
    )


def _likeliest(
    suspects: Sequence[FactDifference],
    unknown: Sequence[FactDifference],
    microprobes: Microprobes,
    ruled: Sequence[Ruling],
    equalities: Mapping[Section, Equality],
) -> str:
    if suspects:
        return f"Likeliest cause: {tell(suspects[0])}{_following(suspects, ruled)}{_further(suspects)}."
    if microprobes.word is ProbeWord.SOMETHING_ELSE and _agree(equalities):
        return f"{DEVICE}."
    hidden = [fact for fact in unknown if fact.section is not Section.BEHAVIOUR]
    if hidden:
        return f"No known fact of model and stack differs; {_names(hidden)} cannot be compared ({reason(hidden[0])})."
    return f"{NOTHING}."


def _agree(equalities: Mapping[Section, Equality]) -> bool:
    return all(equalities.get(section) is Equality.SAME for section in (Section.MODEL, Section.STACK))


def _following(suspects: Sequence[FactDifference], ruled: Sequence[Ruling]) -> str:
    """What changed with the first suspect, or that memory is suspected."""
    first = suspects[0]
    if first.name.startswith("parameters.") and ruling.is_same(Matter.WEIGHTS, ruled):
        return " although the weight files are the same: suspect the device's memory, or what was loaded"
    follow = {name.partition(".")[0] for name, cause in causes(suspects, ruled).items() if cause is first}
    said = [FOLLOWED[part] for part in FOLLOWED if part in follow]
    return f", and with it {' and '.join(said)}" if said else ""


def _further(suspects: Sequence[FactDifference]) -> str:
    more = len(suspects) - 1
    return "" if not more else f" ({more} further {'fact differs' if more == 1 else 'facts differ'})"


def _names(facts: Sequence[FactDifference]) -> str:
    return ", ".join(fact.name for fact in facts)


def _suspect(fact: FactDifference) -> dict[str, Any]:
    return {
        "section": fact.section.value,
        "name": fact.name,
        "kind": fact.kind.value,
        "before": None if fact.kind is Change.ADDED else fact_to_json(fact.before),
        "after": None if fact.kind is Change.REMOVED else fact_to_json(fact.after),
        "sentence": tell(fact),
    }


def _undetermined(fact: FactDifference) -> dict[str, Any]:
    return {"section": fact.section.value, "name": fact.name, "reason": reason(fact)}
