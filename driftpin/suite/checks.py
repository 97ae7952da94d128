"""Checks of an output text. Pure; a check that cannot be evaluated says so and is neither passed nor failed.

Regular expressions run over at most the first 20,000 characters, so that a hostile pattern meets a bounded text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from driftpin.suite.canary import Check, CheckKind

REGEX_CHARACTERS = 20_000
SHOWN = 60  # characters of a text quoted in a detail


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The answer of one check; `passed` is None where it could not be evaluated, and `detail` says why."""

    check: Check
    passed: bool | None
    detail: str


def run_checks(checks: Sequence[Check], text: str) -> tuple[CheckResult, ...]:
    """Every check on one text, in order."""
    return tuple(run_check(check, text) for check in checks)


def run_check(check: Check, text: str) -> CheckResult:
    """One check on one text."""
    passed, detail = _RUN[check.kind](check.value, text)
    return CheckResult(check=check, passed=passed, detail=detail)


Answer = tuple[bool | None, str]


def _schema(schema: Any, text: str) -> Answer:
    """The whole text must be one JSON value: a fence around it fails, since a program would choke on it."""
    import jsonschema  # noqa: PLC0415 - slow to import, rarely needed

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return False, f"the text is not one JSON value: {error}"
    validator = jsonschema.validators.validator_for(schema)(schema)
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    except (jsonschema.exceptions._WrappedReferencingError, RecursionError) as unresolved:  # type: ignore[attr-defined]
        return None, f"the schema cannot be evaluated: {unresolved}"
    if error is None:
        return True, "the JSON value satisfies the schema"
    return False, f"at {error.json_path}: {error.message[:SHOWN]}"


def _regex(pattern: str, text: str) -> Answer:
    found = re.search(pattern, text[:REGEX_CHARACTERS])
    if found:
        return True, f"found {found.group()[:SHOWN]!r}"
    if len(text) > REGEX_CHARACTERS:
        return None, f"not found in the first {REGEX_CHARACTERS} characters; the rest was not searched"
    return False, "the pattern is not found"


def _contains(wanted: str, text: str) -> Answer:
    return wanted in text, f"looked for {wanted[:SHOWN]!r}"


def _exact(wanted: str, text: str) -> Answer:
    return text.strip() == wanted.strip(), f"the text is {text.strip()[:SHOWN]!r}"


_RUN: Mapping[CheckKind, Callable[[Any, str], Answer]] = MappingProxyType(
    {
        CheckKind.JSON_SCHEMA: _schema,
        CheckKind.REGEX: _regex,
        CheckKind.CONTAINS: _contains,
        CheckKind.EXACT: _exact,
    }
)
