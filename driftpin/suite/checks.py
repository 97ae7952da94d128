"""Checks run on an output text: pure, and the same answer on every machine. Knows nothing of traces or verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from referencing.exceptions import Unresolvable

from driftpin.suite.canary import Check, CheckKind
from driftpin.suite.pattern import MAX_CHARS, Pattern, PatternError, compile_pattern
from driftpin.suite.schema import schema_error, schema_patterns

SHOWN = 80  # characters of a text that a detail quotes


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The answer to one check; `passed` is None where it could not be evaluated, and `detail` says why."""

    check: Check
    passed: bool | None
    detail: str


def run_check(check: Check, text: str) -> CheckResult:
    """Ask one question of `text`. Deterministic: what is too much work is decided by size, never by a clock."""
    passed, detail = _RUN[check.kind](check.value, text)
    return CheckResult(check=check, passed=passed, detail=detail)


def run_checks(checks: Iterable[Check], text: str) -> tuple[CheckResult, ...]:
    """One result per check, in their order."""
    return tuple(run_check(check, text) for check in checks)


def _exact(value: str, text: str) -> tuple[bool, str]:
    if text.strip() == value.strip():
        return True, f"The output is {_quote(value)}."
    return False, f"The output is {_quote(text.strip())}, not {_quote(value)}."


def _contains(value: str, text: str) -> tuple[bool, str]:
    found = text.find(value)
    if found >= 0:
        return True, f"{_quote(value)} is found at character {found}."
    return False, f"{_quote(value)} is not in the output {_quote(text)}."


def _regex(value: str, text: str) -> tuple[bool | None, str]:
    try:
        pattern = compile_pattern(value)
    except PatternError as error:
        return None, f"The pattern {_quote(value)} was not tried: {error}."
    if pattern.too_slow(len(text)):
        return None, _not_tried(value, text)
    match = pattern.compiled.search(text)
    if match is None:
        return False, f"The pattern {_quote(value)} is not found in the output {_quote(text)}."
    return True, f"The pattern {_quote(value)} is found at character {match.start()}."


def _json_schema(schema: dict[str, Any], text: str) -> tuple[bool | None, str]:
    slow = _slow_pattern(schema, text)
    if slow is not None:
        return None, slow
    try:
        error = schema_error(schema, json.loads(text, parse_constant=_no_constant))
    except json.JSONDecodeError as failure:
        return False, _not_json(text, failure)
    except ValueError as failure:
        return None, f"The output has a number that is too long to read: {failure}."
    except (RecursionError, OverflowError, Unresolvable) as failure:
        return None, f"The output cannot be compared with the schema ({type(failure).__name__})."
    if error is not None:
        return False, f"The output is JSON but does not satisfy the schema: {error}."
    return True, "The output is JSON and satisfies the schema."


def _not_json(text: str, failure: json.JSONDecodeError) -> str:
    if text.lstrip().startswith("```"):
        return "The output is not JSON alone: it stands in a ``` fence, and the check is strict."
    return f"The output is not JSON: {failure.msg} at character {failure.pos}."


def _slow_pattern(schema: dict[str, Any], text: str) -> str | None:
    for source in schema_patterns(schema):
        pattern: Pattern = compile_pattern(source)
        if pattern.too_slow(len(text)):
            return _not_tried(source, text)
    return None


def _not_tried(pattern: str, text: str) -> str:
    limit = f"the limit is {MAX_CHARS}" if len(text) > MAX_CHARS else "it has too many free repeats for that length"
    return f"The pattern {_quote(pattern)} was not tried on an output of {len(text)} characters: {limit}."


def _no_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _quote(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


_RUN: dict[CheckKind, Callable[[Any, str], tuple[bool | None, str]]] = {
    CheckKind.EXACT: _exact,
    CheckKind.CONTAINS: _contains,
    CheckKind.REGEX: _regex,
    CheckKind.JSON_SCHEMA: _json_schema,
}
