"""One differing fact as words: "transformers was upgraded from 4.57.6 to 5.24.0". Knows names and values, no causes."""

from __future__ import annotations

import re

from driftpin.environment.difference import Change, FactDifference
from driftpin.environment.fact import Fact, Unknown

DIGEST = re.compile(r"(v\d+:)?[0-9a-f]{40,}")
LONGEST = 80  # characters of a value in a sentence
NOUNS = {
    "weights": "the weight file",
    "parameters": "the parameters and buffers of",
    "computed": "what the library computes for",
    "config": "the model's",
    "tokenizer": "the tokenizer's",
    "sampling": "the generation setting",
    "attention": "attention",
    "experts": "the experts'",
    "cache": "the cache",
    "compile": "the compile",
    "device": "the device's",
    "isa": "the instruction set of",
    "library": "",
    "object": "the shared object",
    "variable": "the variable",
    "flag": "the switch",
}
PREFIXES = ("in_force.", "asked.", "file.")  # of settings: said by what happened, not by where it stands
NAMED = {
    "dtype": "the number format",
    "template": "the chat template",
    "config.file": "the model's configuration",
    "generation.file": "the generation configuration",
    "parameters.layout": "the library's layout of the parameters",
    "parameters.total": "the digest over all parameters",
    "parameters.dtypes": "the parameters' number formats",
    "sampling.mode": "the sampling mode",
    "sampling.end_ids": "the end tokens",
    "tokenizer.backend": "the tokenizer's definition",
    "tokenizer.class": "the tokenizer's class",
    "tokenizer.special": "the tokenizer's special ids",
    "keys.missing": "the list of missing weights",
    "keys.unexpected": "the list of unexpected weights",
    "flag.threads": "the number of threads",
    "device.isa": "the device's instruction sets",
}


def tell(fact: FactDifference) -> str:
    """What happened to the fact, as the middle of a sentence."""
    first, _, rest = fact.name.partition(".")
    if fact.kind is Change.UNDETERMINED:
        return f"{subject(fact.name)} cannot be compared: {reason(fact)}"
    if first == "sampling" and rest.startswith("in_force."):
        return _setting(fact, rest.removeprefix("in_force."))
    if first == "variable":
        return _variable(fact)
    if first in ("library", "driver"):
        return _version(fact)
    return _plainly(fact)


def reason(fact: FactDifference) -> str:
    """Why an undetermined fact is unknown, each side's reason once."""
    sides = {"before": fact.before, "now": fact.after}
    why = {name: side.reason for name, side in sides.items() if isinstance(side, Unknown)}
    if len(why) == 2 and why["before"] == why["now"]:
        return f"unknown on both sides, {why['now']}"
    return "; ".join(f"unknown {name}, {text}" for name, text in why.items())


def subject(name: str) -> str:
    """A fact's name for people: "the shared object libm.so.6"."""
    first, _, rest = name.partition(".")
    noun = NOUNS.get(first)
    if name in NAMED or noun is None:
        return NAMED.get(name, name)
    for prefix in PREFIXES:
        rest = rest.removeprefix(prefix)
    return f"{noun} {rest}".strip()


def shown(value: Fact) -> str:
    """A value in a sentence; digests are told by their beginning."""
    if isinstance(value, Unknown):
        return f"unknown ({value.reason})"
    text = str(value)
    if DIGEST.fullmatch(text):
        return text[:15]
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _plainly(fact: FactDifference) -> str:
    name = subject(fact.name)
    if fact.kind is Change.ADDED:
        return f"{name} is new{_valued(fact.after)}"
    if fact.kind is Change.REMOVED:
        return f"{name} is gone{_valued(fact.before)}"
    if _opaque(fact.before) or _opaque(fact.after):
        return f"{name} changed"
    return f"{name} went from {shown(fact.before)} to {shown(fact.after)}"


def _valued(value: Fact) -> str:
    return "" if value is None or _opaque(value) else f" ({shown(value)})"


def _opaque(value: Fact) -> bool:
    """A digest, or several: nothing that a reader could read."""
    return isinstance(value, list | dict) or bool(DIGEST.fullmatch(str(value)))


def _setting(fact: FactDifference, name: str) -> str:
    if fact.kind is Change.ADDED:
        return f"{name} = {shown(fact.after)} acts on the output now and did not before"
    if fact.kind is Change.REMOVED:
        return f"{name} = {shown(fact.before)} acted on the output before and does not now"
    return f"{name}, which acts on the output, went from {shown(fact.before)} to {shown(fact.after)}"


def _variable(fact: FactDifference) -> str:
    name = subject(fact.name)
    if fact.before is None:
        return f"{name} was not set before and is now {fact.after!r}"
    if fact.after is None:
        return f"{name} was {fact.before!r} before and is not set now"
    return f"{name} went from {fact.before!r} to {fact.after!r}"


def _version(fact: FactDifference) -> str:
    """A release number went up or down; anything else merely changed."""
    old, new = _release(fact.before), _release(fact.after)
    if fact.kind is not Change.CHANGED or not old or not new or old == new:
        return _plainly(fact)
    verb = "upgraded" if new > old else "downgraded"
    return f"{subject(fact.name)} was {verb} from {fact.before} to {fact.after}"


def _release(version: Fact) -> tuple[int, ...]:
    """The numbers that a version begins with; empty for what is no version."""
    found = re.match(r"\d+(\.\d+)+", version) if isinstance(version, str) else None
    return tuple(int(part) for part in found.group().split(".")) if found else ()
