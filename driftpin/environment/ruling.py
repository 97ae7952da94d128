"""The parts of a model, each ruled out as a cause or named, before anyone looks at hardware or libraries. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from driftpin.environment.difference import Change, FactDifference
from driftpin.environment.environment import Environment, Section
from driftpin.environment.wording import reason, subject, tell

NAMED = 3  # facts named in one sentence
FORMATS = "parameters.dtypes"
TOTAL = "parameters.total"  # says nothing where a part is named
CLEAN = "clean"  # the sampling mode in which no generation file acts
FILES = ("generation.", "sampling.file.")  # what a generation file says, in force or not


class Matter(StrEnum):
    """What a model is made of, in the order in which it is asked."""

    WEIGHTS = "weights"  # files
    PARAMETERS = "parameters"  # numbers as they lie on the device, buffers included
    CONFIGURATION = "configuration"  # config.json and remote code
    TOKENIZER = "tokenizer"  # definition, class, special ids
    TEMPLATE = "template"  # the chat template
    GENERATION = "generation"  # generation configuration and the settings in force


class Word(StrEnum):
    """What can be said of one matter."""

    SAME = "same"  # every fact of it is known on both sides and equal: ruled out
    CHANGED = "changed"  # a known fact of it differs
    UNDETERMINED = "undetermined"  # neither


PARTS = {
    Matter.WEIGHTS: ("weights",),
    Matter.PARAMETERS: ("parameters",),
    Matter.CONFIGURATION: ("config",),
    Matter.TOKENIZER: ("tokenizer",),
    Matter.TEMPLATE: ("template",),
    Matter.GENERATION: ("generation", "sampling"),
}
TITLES = {
    Matter.WEIGHTS: "weight files",
    Matter.PARAMETERS: "parameters on the device",
    Matter.CONFIGURATION: "model configuration",
    Matter.TOKENIZER: "tokenizer",
    Matter.TEMPLATE: "chat template",
    Matter.GENERATION: "generation settings",
}
NOT_IN_FORCE = "the file changed, but nothing of it is in force: the settings are driftpin's own (sampling is clean)"


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """One matter with its word and why."""

    matter: Matter
    word: Word
    sentence: str
    in_force: bool = True  # False: what changed cannot act on any call

    def to_json(self) -> dict[str, str]:
        """As documented under `attribution`."""
        return {"matter": self.matter.value, "word": self.word.value, "sentence": self.sentence}


def rule(differences: Sequence[FactDifference], old: Environment, new: Environment) -> tuple[Ruling, ...]:
    """One ruling per matter, in the order of `Matter`."""
    return tuple(_rule(matter, list(_of(matter, differences)), old, new) for matter in Matter)


def is_same(matter: Matter, ruled: Sequence[Ruling]) -> bool:
    """Whether a matter was ruled out."""
    return any(one.matter is matter and one.word is Word.SAME for one in ruled)


def is_inert(fact: FactDifference, ruled: Sequence[Ruling]) -> bool:
    """A fact of the generation file while nothing of that file is in force."""
    unused = any(one.matter is Matter.GENERATION and not one.in_force for one in ruled)
    return unused and fact.section is Section.MODEL and fact.name.startswith(FILES)


def _rule(matter: Matter, found: Sequence[FactDifference], old: Environment, new: Environment) -> Ruling:
    title = TITLES[matter]
    known = [f for f in found if f.kind is not Change.UNDETERMINED]
    if unread := _unread(matter, known, old, new):
        return Ruling(matter=matter, word=Word.UNDETERMINED, sentence=f"{title}: {unread}")
    if known and matter is Matter.GENERATION and _unused(known, old, new):
        return Ruling(matter=matter, word=Word.CHANGED, sentence=f"{title}: {NOT_IN_FORCE}", in_force=False)
    if known:
        telling = [fact for fact in known if fact.name != TOTAL] or known
        return Ruling(matter=matter, word=Word.CHANGED, sentence=f"{title}: {_listed(telling)}")
    if found:
        why = "; ".join(f"{subject(fact.name)} {reason(fact)}" for fact in found[:NAMED])
        return Ruling(matter=matter, word=Word.UNDETERMINED, sentence=f"{title}: {why}")
    return Ruling(matter=matter, word=Word.SAME, sentence=f"{title}: the same")


def _unread(matter: Matter, known: Sequence[FactDifference], old: Environment, new: Environment) -> str | None:
    """Why nothing can be said of a matter whatever its facts are."""
    names = {name for env in (old, new) for name in env.model if _belongs(name, matter)}
    if not names:
        return "recorded on neither side"
    if names == {FORMATS}:
        return "only their number formats were recorded"
    if matter is Matter.PARAMETERS and known and (formats := _formats(old, new)):
        return f"held as {formats[0]} before and as {formats[1]} now, so their bits cannot be compared"
    return None


def _of(matter: Matter, differences: Sequence[FactDifference]) -> Iterator[FactDifference]:
    return (f for f in differences if f.section is Section.MODEL and _belongs(f.name, matter))


def _belongs(name: str, matter: Matter) -> bool:
    return name.partition(".")[0] in PARTS[matter]


def _formats(old: Environment, new: Environment) -> tuple[str, str] | None:
    """The two number formats where both are known and differ."""
    before, after = old.stack.get("dtype"), new.stack.get("dtype")
    return (before, after) if isinstance(before, str) and isinstance(after, str) and before != after else None


def _unused(known: Sequence[FactDifference], old: Environment, new: Environment) -> bool:
    """Both sides ran under driftpin's own settings, and only what the file says differs."""
    clean = all(env.model.get("sampling.mode") == CLEAN for env in (old, new))
    return clean and all(fact.name.startswith(FILES) for fact in known)


def _listed(facts: Sequence[FactDifference]) -> str:
    said = ", ".join(tell(fact) for fact in facts[:NAMED])
    return said if len(facts) <= NAMED else f"{said}, and {len(facts) - NAMED} more"
