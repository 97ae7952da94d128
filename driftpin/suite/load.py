"""Reading a suite from YAML or JSONL, strictly: an error names the file, the canary and the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from driftpin.errors import SuiteError
from driftpin.suite.canary import Suite
from driftpin.suite.schema import CanaryShape, SettingsShape, SuiteShape

QUOTE = "Put quotes around it: YAML reads an unquoted 2024, yes or 1.0 as a number or a truth value."


def load_suite(path: Path) -> Suite:
    """The suite in a .yaml, .yml, .json or .jsonl file; raises `SuiteError`."""
    text = _read(path)
    body = _lines(path, text) if path.suffix == ".jsonl" else _document(path, text)
    return suite_of(body, str(path))


def suite_of(body: Any, where: str) -> Suite:
    """A parsed suite; `where` names its source in errors."""
    if not isinstance(body, dict):
        raise SuiteError(f"{where} is not a suite: it must be a mapping with `name` and `canaries`.")
    try:
        shape = SuiteShape.model_validate(body)
    except ValidationError as error:
        raise SuiteError(f"{where}: {_told(error)}") from error
    _refuse_bad_clock(where, shape.clock)
    canaries = tuple(_canary(where, n, raw, shape.defaults) for n, raw in enumerate(shape.canaries, 1))
    _refuse_duplicates(where, [canary.id for canary in canaries])
    return Suite(name=shape.name, canaries=canaries, clock=shape.clock)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SuiteError(
            f"{path} is not UTF-8: byte {error.start} cannot be read.", remedy="Save it as UTF-8."
        ) from error
    except OSError as error:
        remedy = "Check the path in `[suites]`, or run `driftpin init` for a sample."
        raise SuiteError(f"Suite {path} cannot be read: {error.strerror}.", remedy=remedy) from error


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses a key that is written twice: the later one would win unseen."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]
        if key in seen:
            raise yaml.MarkedYAMLError(problem=f"the key {key!r} is written twice", problem_mark=key_node.start_mark)
        seen[key] = loader.construct_object(value_node, deep=True)  # type: ignore[no-untyped-call]
    return seen


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _document(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        raise SuiteError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from error


def _lines(path: Path, text: str) -> dict[str, Any]:
    """One canary per line; a first line with `suite` names the suite, else its file does."""
    rows = [_line(path, n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    head: Mapping[str, Any] = rows[0] if rows and "suite" in rows[0] else {}
    body: dict[str, Any] = {"name": head.get("suite", path.stem), "canaries": rows[1:] if head else rows}
    return body | {key: value for key, value in head.items() if key != "suite"}


def _line(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{path}, line {number} is not JSON: {error}.") from error
    if not isinstance(row, dict):
        raise SuiteError(f"{path}, line {number} is not a JSON object.")
    return row


def _canary(where: str, number: int, raw: Any, defaults: SettingsShape):  # type: ignore[no-untyped-def]
    named = raw.get("id") if isinstance(raw, dict) else None
    label = f"canary {named!r}" if isinstance(named, str) else f"canary number {number}"
    try:
        return CanaryShape.model_validate(raw).value(defaults)
    except ValidationError as error:
        raise SuiteError(f"{where}, {label}: {_told(error)}", remedy=_advice(error)) from error


def _told(error: ValidationError) -> str:
    """Every problem as 'field: what is wrong'; what was given is not quoted, it may be long or odd."""
    parts = []
    for problem in error.errors(include_url=False, include_input=False):
        field = ".".join(str(step) for step in problem["loc"]) or "the canary"
        message = problem["msg"].removeprefix("Value error, ")
        parts.append(f"{field}: {'this key is not known' if problem['type'] == 'extra_forbidden' else message}")
    return "; ".join(parts) + "."


def _advice(error: ValidationError) -> str | None:
    wanted_text = any(p["type"] == "string_type" and p["input"] is not None for p in error.errors())
    return QUOTE if wanted_text else None


def _refuse_duplicates(where: str, ids: list[str]) -> None:
    twice = sorted({i for i in ids if ids.count(i) > 1})
    if twice:
        raise SuiteError(f"{where}: the id {twice[0]!r} stands more than once.", remedy="Give each canary its own id.")


def _refuse_bad_clock(where: str, clock: str | None) -> None:
    try:
        datetime.fromisoformat(clock or "2000-01-01")
    except ValueError as error:
        raise SuiteError(
            f"{where}: clock {clock!r} is not an ISO time.", remedy='Write "2026-01-01T00:00:00".'
        ) from error
