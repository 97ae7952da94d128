"""Every key of a configuration with its value and where that came from; secrets as references only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from driftpin.settings.config import Config
from driftpin.settings.leaves import Layer, Origin
from driftpin.settings.problem import Key, dotted
from driftpin.settings.secret import Secret

FORMAT = "driftpin.config/1"  # of `config_to_json`; raised when a key changes its meaning or goes
NOT_SET = "not set"
_DEFAULT = Origin(layer=Layer.DEFAULT)


def config_origins(config: Config) -> list[tuple[str, str, str]]:
    """(dotted key, value as shown, origin) of every key, defaults included, in the order of the schema."""
    return [(dotted(key), _shown(value), str(origin)) for key, value, origin in _rows(config)]


def config_to_json(config: Config) -> dict[str, Any]:
    """The same as JSON: `format`, `path`, and `settings`, a list of key, value, layer and source (or null)."""
    rows = [
        {"key": dotted(key), "value": value, "layer": origin.layer.value, "source": origin.name or None}
        for key, value, origin in _rows(config)
    ]
    return {"format": FORMAT, "path": str(config.path), "settings": rows}


def _rows(config: Config) -> Iterator[tuple[Key, Any, Origin]]:
    for key, value in _values(config.tables, ()):
        leaf = config.written.get(key)
        if isinstance(value, Secret):
            yield key, str(value), leaf.origin if leaf else _DEFAULT
        else:
            # As written, so that "1h" is shown and not 3600, and a relative path stays one.
            yield key, leaf.value if leaf else _plain(value), leaf.origin if leaf else _DEFAULT


def _values(value: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _values(getattr(value, name), (*key, name))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _values(inner, (*key, str(name)))
    else:
        yield key, value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return NOT_SET if value is None else json.dumps(value, ensure_ascii=False)
