"""Suites from files: read, validate, and say what is wrong where. Knows nothing of models or token ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from driftpin.canonical import canonical_json
from driftpin.errors import CanonicalError, SuiteError
from driftpin.suite.canary import Canary, Suite
from driftpin.suite.document import parse_json, parse_lines, parse_yaml, read_text
from driftpin.suite.form import CanaryForm, SettingsForm, SuiteForm, sentence

LINES_SUFFIXES = (".jsonl", ".ndjson")
SUFFIXES = (".yaml", ".yml", ".json", *LINES_SUFFIXES)
SHOWN_PROBLEMS = 20
HEADER_KEYS = ("suite", "clock")  # of the optional first line of JSON lines


def load_suite(path: Path) -> Suite:
    """The suite in a YAML or JSON-lines file; raises `SuiteError` naming file, canary and field of every problem."""
    suffix, source = path.suffix.lower(), str(path)
    if suffix not in SUFFIXES:
        raise SuiteError(f"{path} is not a suite by its name.", remedy=f"It must end with {', '.join(SUFFIXES)}.")
    text = read_text(path)
    if suffix in LINES_SUFFIXES:
        return suite_from_json(_document(parse_lines(text, source), path), source=source)
    parse = parse_json if suffix == ".json" else parse_yaml
    return suite_from_json(parse(text, source), source=source)


def suite_from_json(document: Any, *, source: str = "the stored suite") -> Suite:
    """A suite from plain values: a YAML document, or what `Suite.to_json` gave. Raises `SuiteError`."""
    if document in (None, {}):
        raise SuiteError(f"{source} is empty.", remedy="A suite has a name and a list of canaries.")
    problems = list(_surrogates(document))
    if problems:
        raise _refusal(source, problems)
    try:
        form = SuiteForm.model_validate(document)
    except ValidationError as error:
        raise _refusal(source, list(_problems(error, SuiteForm))) from error
    return Suite(name=form.name, clock=form.clock, canaries=_canaries(form.canaries, form.defaults, source))


def _document(lines: list[tuple[int, Any]], path: Path) -> dict[str, Any]:
    """JSON lines in the shape of the YAML document."""
    values = [value for _, value in lines]
    header: dict[str, Any] = {}
    if values and isinstance(values[0], dict) and "suite" in values[0]:
        header = values.pop(0)
    unknown = [key for key in header if key not in HEADER_KEYS]
    if unknown:
        raise SuiteError(f"{path}, first line: unknown field {unknown[0]}; known are {', '.join(HEADER_KEYS)}.")
    clock = {"clock": header["clock"]} if "clock" in header else {}
    return {"name": header.get("suite", path.stem), "canaries": values} | clock


def _canaries(values: list[Any], defaults: SettingsForm, source: str) -> tuple[Canary, ...]:
    canaries: list[Canary] = []
    problems: list[str] = []
    first: dict[str, int] = {}
    for number, value in enumerate(values, start=1):
        label = _label(value, number)
        try:
            canary = CanaryForm.model_validate(value).canary(defaults)
        except ValidationError as error:
            problems += [f"{label}, {problem}" for problem in _problems(error, CanaryForm)]
            continue
        problems += [f"{label}, {problem}" for problem in _uncanonical(canary)]
        if canary.id in first:
            problems.append(f"canary {number}, field id: {canary.id!r} is already the id of canary {first[canary.id]}")
        first.setdefault(canary.id, number)
        canaries.append(canary)
    if problems:
        raise _refusal(source, problems)
    return tuple(canaries)


def _problems(error: ValidationError, form: type[BaseModel]) -> Iterator[str]:
    for item in error.errors(include_url=False):
        place = ".".join(str(part) for part in item["loc"])
        yield f"{f'field {place}: ' if place else ''}{sentence(dict(item), form)}"


def _uncanonical(canary: Canary) -> Iterator[str]:
    """What YAML can say and JSON cannot: dates, sets, numbers beyond 2^53, keys that are no text."""
    try:
        canonical_json(canary.to_json())
    except CanonicalError as error:
        yield f"field checks: a schema holds what JSON cannot ({error.message.rstrip('.')}); put text in quotes"


def _surrogates(document: Any) -> Iterator[str]:
    canaries = document.get("canaries") if isinstance(document, dict) else None
    for number, canary in enumerate(canaries if isinstance(canaries, list) else (), start=1):
        yield from (f"{_label(canary, number)}, {found}" for found in _lone(canary, ""))
    if isinstance(document, dict):
        yield from _lone({key: value for key, value in document.items() if key != "canaries"}, "")


def _lone(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, str):
        at = next((i for i, c in enumerate(value) if "\ud800" <= c <= "\udfff"), None)
        if at is not None:
            yield f"field {place}: holds the lone surrogate U+{ord(value[at]):04X} at character {at}"
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        inner = f"{place}.{key}" if place else str(key)
        yield from _lone(key, f"{place} (a key)".strip())
        yield from _lone(part, inner)


def _label(value: Any, number: int) -> str:
    name = value.get("id") if isinstance(value, dict) else None
    return f"canary {name!r}" if isinstance(name, str) and name else f"canary {number}"


def _refusal(source: str, problems: list[str]) -> SuiteError:
    if len(problems) == 1:
        return SuiteError(f"{_printable(source)}: {_printable(problems[0])}.")
    listed = [f"\n  {_printable(problem)}" for problem in problems[:SHOWN_PROBLEMS]]
    more = len(problems) - SHOWN_PROBLEMS
    return SuiteError(
        f"{_printable(source)} has {len(problems)} problems:{''.join(listed)}" + (f"\n  and {more} more" * (more > 0))
    )


def _printable(text: str) -> str:
    """Safe on any terminal: an error about a lone surrogate must not itself be unprintable."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
