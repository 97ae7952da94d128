"""Turns DRIFTPIN_ variables and command-line flags into values for keys. Knows the names, not what they do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftpin.settings.leaves import Layer, Leaves, Origin
from driftpin.settings.problem import Key, Problem, near
from driftpin.settings.secret import Source
from driftpin.settings.shape import Kind, kind_at, known_keys

PREFIX = "DRIFTPIN_"
OTHER_READERS = frozenset({"DRIFTPIN_CONFIG", "DRIFTPIN_CACHE", "DRIFTPIN_IMAGE_LOCK"})
OTHER_PREFIXES = ("DRIFTPIN_WORKER_",)


class _UnknownKeyError(Exception):
    pass


def overlay_environment(leaves: Leaves, environ: Mapping[str, str]) -> list[Problem]:
    """Apply every `DRIFTPIN_TABLE__KEY`; a variable that names no key is a problem."""
    named = {name: value for name, value in environ.items() if name.startswith(PREFIX) and not _reserved(name)}
    problems = []
    for name in sorted(named):
        origin = Origin(layer=Layer.ENVIRONMENT, name=name, base=Path.cwd())
        try:
            _apply(leaves, _resolve(leaves, name.removeprefix(PREFIX).split("__")), named[name], origin)
        except _UnknownKeyError as error:
            problems.append(Problem(where=f"environment variable {name}", text=str(error)))
    return problems


def overlay_flags(leaves: Leaves, flags: Mapping[str, str]) -> list[Problem]:
    """Apply flags by dotted key, such as `store.url`."""
    problems = []
    for name in sorted(flags):
        key = _split_dotted(name)
        if key is None or kind_at(key) in (Kind.UNKNOWN, Kind.TABLE, Kind.NAMED):
            problems.append(Problem(where=f"flag {name}", text="names no key of the configuration"))
        elif kind_at(key[:1]) is Kind.NAMED and key[1] not in (names := leaves.names(key[0])):
            text = f'"{key[1]}" is not among the {key[0]} of the file{near(key[1], names)}'
            problems.append(Problem(where=f"flag {name}", text=text))
        else:
            _apply(leaves, key, flags[name], Origin(layer=Layer.FLAG, name=name, base=Path.cwd()))
    return problems


def _reserved(name: str) -> bool:
    return name in OTHER_READERS or name.startswith(OTHER_PREFIXES)


def _apply(leaves: Leaves, key: Key, text: str, origin: Origin) -> None:
    # A secret by parts: DRIFTPIN_STORE__PASSWORD__FILE replaces whatever reference a file gave.
    if kind_at(key[:-1]) is Kind.SECRET and key[-1] in set(Source):
        leaves.override(key[:-1], {key[-1]: text}, origin)
    else:
        leaves.override(key, interpret(text, kind_at(key)), origin)


def interpret(text: str, kind: Kind) -> Any:
    """A variable's text as the value that TOML would have given for a key of that kind."""
    if kind is Kind.TEXT:
        return text
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return [part.strip() for part in text.split(",") if part.strip()] if kind is Kind.LIST else text
    # More than one key means that the text held a line break and spoke TOML of its own.
    return parsed["value"] if len(parsed) == 1 else text


def _resolve(leaves: Leaves, parts: list[str]) -> Key:
    """The key that a variable's parts name, cases and dashes made good; `_UnknownKeyError` says what is wrong."""
    key: Key = ()
    for part in parts:
        kind = kind_at(key) if key else Kind.TABLE
        if kind is Kind.TABLE:
            key = (*key, _field(key, part.lower()))
        elif kind is Kind.NAMED:
            key = (*key, _name(key[0], leaves.names(key[0]), part))
        elif kind is Kind.FREE or (kind is Kind.SECRET and part.lower() in set(Source)):
            key = (*key, part.lower())
        else:
            raise _UnknownKeyError(f'"{part}" is too much: the key ends before it')
    if kind_at(key) in (Kind.TABLE, Kind.NAMED):
        raise _UnknownKeyError(f"names a table, not a key in it{near('', known_keys(key))}")
    return key


def _field(key: Key, word: str) -> str:
    known = known_keys(key)
    if word in known:
        return word
    # The one slip that everybody makes: DRIFTPIN_STORE_URL for DRIFTPIN_STORE__URL.
    table = next((name for name in known if not key and word.startswith(f"{name}_")), None)
    if table:
        rest = word.removeprefix(f"{table}_")
        raise _UnknownKeyError(f"names no key; did you mean {PREFIX}{table.upper()}__{rest.upper()}?")
    raise _UnknownKeyError(f"names no key{near(word, known)}")


def _name(table: str, names: list[str], part: str) -> str:
    found = [name for name in names if _normal(name) == _normal(part)]
    if len(found) == 1:
        return found[0]
    if found:
        raise _UnknownKeyError(f"could mean each of {', '.join(sorted(found))} in {table}")
    raise _UnknownKeyError(f'names "{part.lower()}", which is not among the {table} of the file{near(part, names)}')


def _normal(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


def _split_dotted(name: str) -> Key | None:
    try:
        found: Any = tomllib.loads(f"{name} = 0")
    except tomllib.TOMLDecodeError:
        return None
    key: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        ((part, found),) = found.items()
        key.append(part)
    return tuple(key) if found == 0 else None
