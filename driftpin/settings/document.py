"""Reads `driftpin.toml` and what it includes, as data. Knows TOML, paths and text, and no key but `include`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftpin.errors import ConfigError
from driftpin.settings.problem import Problem, refuse

INCLUDE = "include"
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, kw_only=True)
class Document:
    """One parsed file; relative paths in it start at its folder."""

    path: Path
    data: dict[str, Any]


def read_documents(path: Path) -> list[Document]:
    """The file and those that its `include` names, in order; `ConfigError` lists all that cannot be read."""
    if not path.is_file():
        raise ConfigError(
            f"There is no configuration at {path}.",
            remedy="Run `driftpin init` to write one, or name it in DRIFTPIN_CONFIG.",
        )
    documents, problems = _parse_all([path])
    refuse(problems)
    included, problems = _included(documents[0])
    more, unreadable = _parse_all(included)
    nested = [Problem(where=str(d.path), key=(INCLUDE,), text=_NESTED) for d in more if INCLUDE in d.data]
    refuse([*problems, *unreadable, *nested])
    return documents + more


_NESTED = "only the main file may include others"


def _parse_all(paths: list[Path]) -> tuple[list[Document], list[Problem]]:
    documents, problems = [], []
    for path in paths:
        try:
            documents.append(Document(path=path, data=_parse(path)))
        except tomllib.TOMLDecodeError as error:
            problems.append(_syntax_problem(path, str(error)))
        except UnicodeDecodeError as error:
            text = f"is not UTF-8 text (byte {error.object[error.start]:#04x} at offset {error.start})"
            problems.append(Problem(where=str(path), text=text))
        except RecursionError:
            problems.append(Problem(where=str(path), text="is nested too deeply"))
        except OSError as error:
            problems.append(Problem(where=str(path), text=f"cannot be read: {error.strerror}"))
    return documents, problems


def _parse(path: Path) -> dict[str, Any]:
    # "utf-8-sig": editors on Windows put a byte-order mark first, which TOML does not know.
    return tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))


def _syntax_problem(path: Path, message: str) -> Problem:
    found = _PLACE.search(message)
    if not found:
        return Problem(where=str(path), text=f"is not TOML: {message}")
    last = len(path.read_bytes().splitlines())
    place = f"line {found[1]}, column {found[2]}" if found[1] else f"line {last}, at the end"
    return Problem(where=f"{path}, {place}", text=f"is not TOML: {message[: found.start()]}")


def _included(main: Document) -> tuple[list[Path], list[Problem]]:
    patterns = main.data.pop(INCLUDE, [])
    if not isinstance(patterns, list) or not all(isinstance(p, str) and p for p in patterns):
        text = 'must be a list of file names like ["more/*.toml"]'
        return [], [Problem(where=str(main.path), key=(INCLUDE,), text=text)]
    paths: list[Path] = []
    problems = []
    for pattern in patterns:
        found, trouble = _expand(main.path, pattern)
        paths += [path for path in found if path not in paths]
        problems += [Problem(where=str(main.path), key=(INCLUDE,), text=text) for text in trouble]
    return paths, problems


def _expand(main: Path, pattern: str) -> tuple[list[Path], list[str]]:
    if Path(pattern).is_absolute():
        return [], [f'"{pattern}" must be relative to this file']
    try:
        found = sorted(p for p in main.parent.glob(pattern) if p.is_file() and p.resolve() != main.resolve())
    except (ValueError, NotImplementedError) as error:
        return [], [f'"{pattern}" is no usable pattern: {error}']
    exact = not any(mark in pattern for mark in "*?[")
    return found, [f'"{pattern}" names no file'] if exact and not found else []
