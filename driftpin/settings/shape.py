"""What stands under a dotted key: asks the schema, so that no second list of keys exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from driftpin.settings.schema import Tables
from driftpin.settings.secret import Secret


class Kind(StrEnum):
    """What a key holds."""

    TABLE = "table"  # fixed keys
    NAMED = "named"  # tables by a name that the user chooses
    FREE = "free"  # any keys
    SECRET = "secret"  # a reference, perhaps beside plain text
    TEXT = "text"  # a string, or a word of a list
    LIST = "list"  # a list
    VALUE = "value"  # a number, a switch, a duration, a size
    UNKNOWN = "unknown"  # no such key


def annotation_at(key: Sequence[str]) -> Any:
    """The annotation of what lies under `key`, optional parts taken off; None for an unknown key."""
    found: Any = Tables
    for part in key:
        if _is_class(found, BaseModel):
            info = found.model_fields.get(part)
            found = _bare(info.annotation) if info else None
        elif _is_mapping(found):
            found = _bare(get_args(found)[1])
        else:
            return None
    return found


def kind_at(key: Sequence[str]) -> Kind:
    """What `key` holds."""
    return _kind(annotation_at(key))


def known_keys(key: Sequence[str]) -> list[str]:
    """Keys that the table under `key` may have; empty when it is no table with fixed keys."""
    found = annotation_at(key)
    if _is_class(found, BaseModel):
        return list(found.model_fields)
    keys = get_args(_bare(get_args(found)[0])) if _is_mapping(found) else ()
    return [str(k) for k in keys]


def _is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) in (dict, Mapping)


def _kind(found: Any) -> Kind:
    if found is None:
        return Kind.UNKNOWN
    if _is_mapping(found):
        return Kind.NAMED if _is_class(_bare(get_args(found)[1]), BaseModel) else Kind.FREE
    if found is Secret or Secret in get_args(found):
        return Kind.SECRET
    if _is_class(found, BaseModel):
        return Kind.TABLE
    return _kind_of_value(found)


def _kind_of_value(found: Any) -> Kind:
    if get_origin(found) is tuple:
        return Kind.LIST
    return Kind.TEXT if get_origin(found) is Literal or _is_class(found, str) else Kind.VALUE


def _is_class(found: Any, base: type) -> bool:
    return isinstance(found, type) and issubclass(found, base)


def _bare(annotation: Any) -> Any:
    """Without `Annotated` and without `| None`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    parts = [part for part in get_args(annotation) if part is not NoneType]
    optional = NoneType in get_args(annotation) and len(parts) == 1
    return _bare(parts[0]) if optional else annotation
