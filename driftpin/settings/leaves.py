"""Values by dotted key with where each came from. Later layers override, files do not override one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from driftpin.settings.document import Document
from driftpin.settings.problem import Key, Problem
from driftpin.settings.shape import Kind, kind_at


class Layer(StrEnum):
    """Where a value can come from, strongest first."""

    FLAG = "flag"  # the command line
    ENVIRONMENT = "environment"  # a DRIFTPIN_ variable
    FILE = "file"  # driftpin.toml or an included file
    DEFAULT = "default"  # driftpin itself


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where one value came from; relative paths in it start at `base`."""

    layer: Layer
    name: str = ""  # file path, variable or flag
    base: Path = Path()

    def __str__(self) -> str:
        return f"{self.layer.value} {self.name}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One value as written, and its origin."""

    value: Any
    origin: Origin


@dataclass(kw_only=True)
class Leaves:
    """Leaves by key, and for each table the origin that named it first."""

    leaves: dict[Key, Leaf] = field(default_factory=dict)
    tables: dict[Key, Origin] = field(default_factory=dict)

    def add_document(self, document: Document) -> list[Problem]:
        """Add a file's values; a key that another file has already set is a problem."""
        origin = Origin(layer=Layer.FILE, name=str(document.path), base=document.path.parent.absolute())
        problems = []
        for key, value in flatten(document.data):
            clash = self._clash(key, value)
            if clash:
                text = f"is set in {clash.name} too; keep one of them"
                problems.append(Problem(where=str(document.path), key=key, text=text))
            else:
                self._put(key, value, origin)
        return problems

    def override(self, key: Key, value: Any, origin: Origin) -> None:
        """Set `key` whatever was there, tables below it included."""
        for old in [k for k in self.leaves if k[: len(key)] == key or k == key[: len(k)]]:
            del self.leaves[old]
        for below in [k for k in self.tables if len(k) > len(key) and k[: len(key)] == key]:
            del self.tables[below]
        for part, leaf in flatten(value, key) if isinstance(value, dict) else [(key, value)]:
            self._put(part, leaf, origin)

    def origin(self, key: Key) -> Origin | None:
        """Where `key`, or else the nearest table around it, was written."""
        for length in range(len(key), 0, -1):
            part = key[:length]
            if part in self.leaves:
                return self.leaves[part].origin
            if part in self.tables:
                return self.tables[part]
        return None

    def names(self, table: str) -> list[str]:
        """Names of the tables under a top-level key."""
        return [key[1] for key in self.tables if len(key) == 2 and key[0] == table]

    def nested(self) -> dict[str, Any]:
        """The values as nested tables."""
        root: dict[str, Any] = {}
        for key in self.tables:
            _table(root, key)
        for key, leaf in self.leaves.items():
            _table(root, key[:-1])[key[-1]] = leaf.value
        return root

    def _clash(self, key: Key, value: Any) -> Origin | None:
        for length in range(1, len(key) + 1):
            if key[:length] in self.leaves:
                return self.leaves[key[:length]].origin
        return self.tables.get(key) if value is not EMPTY else None

    def _put(self, key: Key, value: Any, origin: Origin) -> None:
        for length in range(1, len(key)):
            self.tables.setdefault(key[:length], origin)
        if value is EMPTY:
            self.tables.setdefault(key, origin)
        else:
            self.tables.pop(key, None)
            self.leaves[key] = Leaf(value=value, origin=origin)


EMPTY = object()  # stands for a table without keys, which has an origin but no leaf


def flatten(table: Mapping[str, Any], prefix: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Leaves of nested tables in order; a secret's table is one leaf, an empty table is `EMPTY`."""
    if not table and prefix:
        yield prefix, EMPTY
    for name, value in table.items():
        key = (*prefix, name)
        if isinstance(value, dict) and kind_at(key) is not Kind.SECRET:
            yield from flatten(value, key)
        else:
            yield key, value


def _table(root: dict[str, Any], key: Key) -> dict[str, Any]:
    for part in key:
        root = root.setdefault(part, {})
    return root
