"""A regular expression and a bound on the work it can cause. Knows nothing of checks or suites.

Model output is hostile input to a backtracking engine: a model that repeats one token for ever is exactly what drives
`(a+)+b` into centuries, and Python's `re` has no time-out. A time-out would also make a verdict depend on how busy the
machine was. So the decision is made from the pattern and the length of the text alone, and is the same everywhere:

- a repeat whose body can match the same text in several ways is exponential, and refused when the suite is loaded;
- otherwise work is bounded by a product over the repeats; a text for which it is too large is not tried.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MAX_CHARS = 16_384  # about 4,096 tokens; longer outputs are not searched
MAX_STEPS = 5 * 10**9  # of the bound, which overstates the real work about sixfold for two free repeats
_PARSER: Any = importlib.import_module("re._parser")  # the parse tree has no public name since Python 3.11
_UNLIMITED = int(_PARSER.MAXREPEAT)
_CHARACTER = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
# Two classes of characters overlap where one of these, or of the characters they name, is in both.
_PROBES = (*map(chr, range(128)), "\u0663", "\u00e9", "\u4e16", "\u2003", "\u20ac", "\U0001f680")
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_NESTED = (
    "a repeat or a choice stands inside a repeat, which can take for ever on a long output; "
    "make the inner part atomic: write `\\w++` for `\\w+`, `(?>a|ab)` for `(a|ab)`"
)


class PatternError(ValueError):
    """The pattern is not usable; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A compiled pattern; `ways` holds, per repeat or choice, in how many ways it may match at one place."""

    compiled: re.Pattern[str]
    ways: tuple[int, ...]

    def steps(self, length: int) -> int:
        """An upper estimate of the engine's steps on a text of `length` characters."""
        steps = length + 1  # a search may start anywhere
        for ways in self.ways:
            steps *= min(ways, length + 1)
        return steps

    def too_slow(self, length: int) -> bool:
        """Whether a text of that many characters must not be searched."""
        return length > MAX_CHARS or self.steps(length) > MAX_STEPS


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Pattern:
    """Compile `source`; raises `PatternError` where it is invalid or could need exponential time."""
    try:
        compiled = re.compile(source)
        ways = _sequence(list(_PARSER.parse(source)), follow=None)
    except PatternError:
        raise
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"it is not a valid regular expression: {error}") from error
    return Pattern(compiled=compiled, ways=tuple(w for w in ways if w > 1))


def _sequence(items: Sequence[Any], *, follow: Any) -> list[int]:
    """The ways of a sequence; `follow` is the item that must come after it, or None where that is not known."""
    ways: list[int] = []
    for item, after in zip(items, [*items[1:], follow], strict=True):
        ways += _item(item, after)
    return ways


def _item(item: Any, after: Any) -> list[int]:
    operation, argument = str(item[0]), item[1]
    if operation in _REPEATS:
        return _repeat(operation, argument, after)
    if operation == "SUBPATTERN":
        return _sequence(list(argument[-1]), follow=after)
    if operation == "BRANCH":
        branches = [_sequence(list(branch), follow=after) for branch in argument[1]]
        return [len(branches), *max(branches, key=_size)]
    if operation == "GROUPREF_EXISTS":
        branches = [_sequence(list(branch or ()), follow=after) for branch in argument[1:]]
        return [2, *max(branches, key=_size)]
    if operation in ("ASSERT", "ASSERT_NOT"):
        return _sequence(list(argument[1]), follow=None)
    return _sequence(list(argument), follow=None) if operation == "ATOMIC_GROUP" else []


def _size(ways: Sequence[int]) -> int:
    return sum(w.bit_length() for w in ways)


def _repeat(operation: str, argument: Any, after: Any) -> list[int]:
    least, most, body = int(argument[0]), int(argument[1]), list(argument[2])
    if most > 1 and _is_open(body, follow=body[0] if body else None):
        raise PatternError(_NESTED)
    inner = _sequence(body, follow=after)
    if operation == "POSSESSIVE_REPEAT" or least == most or _is_determined(body, after):
        return inner
    return [_UNLIMITED if most >= _UNLIMITED else most - least + 1, *inner]


def _is_open(items: Sequence[Any], *, follow: Any) -> bool:
    """Whether the sequence may match in several ways from one start, given what must follow it."""
    return any(_item_is_open(i, a) for i, a in zip(items, [*items[1:], follow], strict=True))


def _item_is_open(item: Any, after: Any) -> bool:
    operation, argument = str(item[0]), item[1]
    if operation in ("MAX_REPEAT", "MIN_REPEAT"):
        body = list(argument[2])
        return (argument[0] != argument[1] and not _is_determined(body, after)) or _is_open(body, follow=after)
    if operation == "SUBPATTERN":
        return _is_open(list(argument[-1]), follow=after)
    return operation in ("BRANCH", "GROUPREF_EXISTS")  # atomic groups and assertions match in one way


def _is_determined(body: Sequence[Any], after: Any) -> bool:
    """Whether a repeat of `body` can end in one place only: it repeats characters that exclude the one to follow."""
    following = _first(after)
    if following is None or len(body) != 1 or str(body[0][0]) not in _CHARACTER:
        return False
    tried = {*_PROBES, *_named(body[0]), *_named(following)}
    return not any(_holds_any(body[0], character) and _holds_any(following, character) for character in tried)


def _first(item: Any) -> Any:
    """The one-character item that a match of `item` must begin with, or None."""
    if item is None or str(item[0]) in _CHARACTER:
        return item
    operation, argument = str(item[0]), item[1]
    if operation == "SUBPATTERN" or (operation in _REPEATS and argument[0] > 0):
        body = list(argument[-1])
        return _first(body[0]) if body else None
    return None


def _named(item: Any) -> set[str]:
    """The characters that a one-character item names: literals and both ends of ranges."""
    operation, argument = str(item[0]), item[1]
    if operation == "RANGE":
        return {chr(argument[0]), chr(argument[1])}
    if operation == "IN":
        return {character for member in argument for character in _named(member)}
    return {chr(argument)} if operation in ("LITERAL", "NOT_LITERAL") else set()


def _holds_any(item: Any, character: str) -> bool:
    """Under any case, as `(?i)` may be on."""
    return any(_holds(item, form) for form in {character, character.lower(), character.upper()})


def _holds(item: Any, character: str) -> bool:
    """Whether a one-character item matches `character`; where unsure, yes."""
    operation, argument = str(item[0]), item[1]
    if operation in ("LITERAL", "NOT_LITERAL"):
        return (chr(argument) == character) == (operation == "LITERAL")
    if operation == "RANGE":
        return bool(argument[0] <= ord(character[0]) <= argument[1])
    if operation == "CATEGORY":
        known = _CATEGORIES.get(str(argument))
        return known is None or re.match(known, character) is not None
    if operation == "IN":
        negated = str(argument[0][0]) == "NEGATE"
        members = argument[1:] if negated else argument
        return any(_holds(member, character) for member in members) != negated
    return True
