"""Merged values against the schema: frozen tables, or every problem with its file and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from driftpin.settings.leaves import Layer, Leaf, Leaves, Origin
from driftpin.settings.problem import Key, Problem, near
from driftpin.settings.schema import DEFAULT_STORE, Tables
from driftpin.settings.shape import known_keys

SQLITE = "sqlite:///"

# What pydantic calls it, and what a person should read. `{}` takes the error's own context.
_WORDS = {
    "missing": "is missing",
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "mapping_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_pattern_mismatch": "has the wrong form; it must match {pattern}",
    "value_error": "{error}",
}


def validate(leaves: Leaves, main: Path, environ: Mapping[str, str]) -> tuple[Tables | None, list[Problem]]:
    """The tables with paths made absolute; None when there are problems."""
    data = _with_paths(leaves, main, environ).nested()
    try:
        return Tables.model_validate(data, context={"environ": environ}), []
    except ValidationError as error:
        return None, [_problem(detail, leaves, main) for detail in error.errors(include_url=False)]


def _problem(detail: ErrorDetails, leaves: Leaves, main: Path) -> Problem:
    # pydantic marks a bad key of a table with a last part "[key]"; the key itself stands before it.
    key = tuple(str(part) for part in detail["loc"] if part != "[key]")
    return problem_at(key, _words(detail, key), leaves, main)


def problem_at(key: Key, text: str, leaves: Leaves, main: Path) -> Problem:
    """A problem placed where its key, or the nearest table around it, was written."""
    origin = leaves.origin(key)
    return Problem(where=_where(origin) if origin else str(main), key=key, text=text)


def _where(origin: Origin) -> str:
    return {
        Layer.ENVIRONMENT: f"environment variable {origin.name}",
        Layer.FLAG: f"flag {origin.name}",
    }.get(origin.layer, origin.name)


def _words(detail: ErrorDetails, key: Key) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden" or detail["loc"][-1] == "[key]":
        return f"there is no such key{near(key[-1], known_keys(key[:-1]))}"
    if kind in ("literal_error", "enum"):
        expected = str(context["expected"]).replace("'", '"')
        return f"must be {expected}, not {_shown(detail['input'])}"
    words = _WORDS.get(kind)
    return words.format_map(context) if words else detail["msg"][:1].lower() + detail["msg"][1:]


def _shown(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _with_paths(leaves: Leaves, main: Path, environ: Mapping[str, str]) -> Leaves:
    """A copy in which relative paths start where each was written: file's folder, or the working directory."""
    copy = Leaves(leaves=dict(leaves.leaves), tables=dict(leaves.tables))
    if ("store", "url") not in copy.leaves and ("store",) not in copy.leaves:
        origin = Origin(layer=Layer.DEFAULT, base=main.parent.absolute())
        copy.override(("store", "url"), DEFAULT_STORE, origin)
    for key, leaf in copy.leaves.items():
        copy.leaves[key] = Leaf(value=_absolute(key, leaf, environ), origin=leaf.origin)
    return copy


def _absolute(key: Key, leaf: Leaf, environ: Mapping[str, str]) -> Any:
    value, base = leaf.value, leaf.origin.base
    if key == ("store", "url") and isinstance(value, str):
        return _absolute_sqlite(value, base, environ)
    if key[-1] == "path" and key[0] in ("suites", "models") and isinstance(value, str) and value:
        return _join(base, value, environ)
    if isinstance(value, dict) and isinstance(value.get("file"), str) and value["file"]:
        return value | {"file": _join(base, value["file"], environ)}
    return value


def _absolute_sqlite(url: str, base: Path, environ: Mapping[str, str]) -> str:
    place, mark, query = url.removeprefix(SQLITE).partition("?")
    if not url.startswith(SQLITE) or place in ("", ":memory:") or place.startswith("file:"):
        return url
    return SQLITE + _join(base, place, environ) + mark + query


def _join(base: Path, path: str, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME")
    return str(Path(home) / path[2:] if path.startswith("~/") and home else base / path)
