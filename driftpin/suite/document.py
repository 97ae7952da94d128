"""A suite file as plain values: strict YAML and strict JSON lines. Knows nothing of what a suite should contain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from driftpin.errors import SuiteError

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
MAX_DEPTH = 100
MAX_VALUES = 2_000_000


class DuplicateKeyError(ValueError):
    """A mapping names the same key twice; a lenient reader would silently keep the last."""


def read_text(path: Path) -> str:
    """The file as text, without a byte-order mark; raises `SuiteError` where it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8").removeprefix(BOM)
    except FileNotFoundError as error:
        raise SuiteError(f"There is no suite file {path}.", remedy="Check the path in driftpin.toml.") from error
    except OSError as error:
        raise SuiteError(
            f"The suite file {path} cannot be read: {error.strerror}.", remedy="Check what it is and its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise SuiteError(
            f"{path} is not valid UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}.",
            remedy="Save the file as UTF-8.",
        ) from error


def parse_yaml(text: str, source: str) -> Any:
    """The one YAML document in `text`; raises `SuiteError` naming the line, also for duplicate keys."""
    try:
        return _bounded(yaml.load(text, Loader=_StrictLoader), source)  # noqa: S506 (a SafeLoader)
    except yaml.reader.ReaderError as error:
        raise SuiteError(
            f"{source} holds the character U+{_code(error.character):04X} at character {error.position}, "
            "which YAML does not allow as it is.",
            remedy='Write it as an escape in double quotes, such as "\\0" or "\\x07".',
        ) from error
    except yaml.MarkedYAMLError as error:
        where = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise SuiteError(f"{source} is not valid YAML: {problem}{where}.") from error
    except (RecursionError, ValueError) as error:  # ValueError: a date or number that looks right and is not
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SuiteError(f"{source} cannot be read as YAML: {why}.", remedy="Put text in quotes.") from error


def parse_lines(text: str, source: str) -> list[tuple[int, Any]]:
    """Number and JSON value of each line that is not blank; raises `SuiteError` naming the first that is no JSON."""
    return list(_lines(text, source))


def parse_json(text: str, source: str) -> Any:
    """The one JSON value in `text`, without NaN or duplicate keys; raises `SuiteError`."""
    try:
        return _bounded(json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant), source)
    except RecursionError as error:
        raise SuiteError(f"{source} is not usable JSON: it is nested too deeply.") from error
    except ValueError as error:
        raise SuiteError(f"{source} is not valid JSON: {error}.") from error


def _lines(text: str, source: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):  # not splitlines: JSON strings may hold U+2028
        if line.strip():
            yield number, parse_json(line, f"{source}, line {number}")


def _bounded(document: Any, source: str) -> Any:
    """The document; aliases can make a few lines of YAML unfold without end, which every later walk would follow."""
    waiting, count = [(document, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting += [(part, depth + 1) for part in parts]
        count += 1
        if depth > MAX_DEPTH or count + len(waiting) > MAX_VALUES:
            raise SuiteError(
                f"{source} is nested deeper than {MAX_DEPTH} levels or unfolds to more than {MAX_VALUES} values.",
                remedy="Look for an alias (*name) that refers to itself.",
            )
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise DuplicateKeyError(f"the key {key!r} appears twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _code(character: Any) -> int:
    return character if isinstance(character, int) else ord(character)


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe types, and no key twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:  # before merge keys (<<) are unfolded: they may be overridden on purpose
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} appears twice in one mapping", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
