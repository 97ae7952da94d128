"""A JSON schema as a check uses it: what is accepted, and whether a value satisfies it. Never fetches anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import UnknownDialect, specification_with

from driftpin.canonical import canonical_json
from driftpin.suite.pattern import PatternError, compile_pattern

DRAFT202012 = "https://json-schema.org/draft/2020-12/schema"
MAX_DEPTH = 50  # of a schema; well below what a suite file and Python's own stack may hold
SAFE, BEYOND_DIGITS = 2**53, 10**21  # from the one integers are doubles, from the other doubles have an exponent
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class UnusableSchemaError(ValueError):
    """The schema cannot be used; the message says why."""


def accept_schema(schema: Any) -> None:
    """Raise `UnusableSchemaError` for what is no JSON schema, reaches outside itself or holds a dangerous pattern."""
    if not isinstance(schema, dict):
        raise UnusableSchemaError("a JSON schema is a mapping")
    _accept_depth(schema)  # first: all that follows is recursive
    _accept_dialect(schema)
    _accept_references(schema)  # before check_schema, which does not look at them
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise UnusableSchemaError(f"it is not a valid JSON schema: at {error.json_path}, {error.message}") from error
    for pattern in schema_patterns(schema):
        try:
            compile_pattern(pattern)
        except PatternError as error:
            raise UnusableSchemaError(f"its pattern {pattern!r}: {error}") from error


def as_doubles(value: Any) -> Any:
    """The schema with whole numbers of 2^53 and more as floats, where that is how canonical JSON writes such a float.

    It has no integers of that size, and writes 1e16 as 10000000000000000: read back, it must be the same suite.
    """
    if isinstance(value, dict):
        return {key: as_doubles(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_doubles(part) for part in value]
    if isinstance(value, int) and not isinstance(value, bool) and SAFE <= abs(value) < BEYOND_DIGITS:
        return float(value) if canonical_json(float(value)) == str(value).encode() else value
    return value


def schema_error(schema: Mapping[str, Any], value: Any) -> str | None:
    """Why `value` does not satisfy `schema`, or None where it does."""
    kind: type[Validator] = validator_for(schema, default=Draft202012Validator)
    # The default registry fetches remote references over the network; an empty one never does.
    error = best_match(kind(schema, registry=Registry()).iter_errors(value))
    return None if error is None else f"at {error.json_path}, {error.message}"


def schema_patterns(schema: Any) -> Iterator[str]:
    """Every regular expression in the schema."""
    for mapping in _mappings(schema):
        if isinstance(mapping.get("pattern"), str):
            yield mapping["pattern"]
        if isinstance(mapping.get("patternProperties"), Mapping):
            yield from (key for key in mapping["patternProperties"] if isinstance(key, str))


def _accept_depth(schema: Any) -> None:
    level = [schema]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in _children(value)]
    if level:
        raise UnusableSchemaError(f"it is nested deeper than {MAX_DEPTH} levels")


def _accept_dialect(schema: Mapping[str, Any]) -> None:
    dialect = schema.get("$schema")
    if dialect is not None and (not isinstance(dialect, str) or not _is_known(dialect)):
        raise UnusableSchemaError(f"its $schema {dialect!r} is not a published draft; leave it out for draft 2020-12")


def _is_known(dialect: str) -> bool:
    try:
        specification_with(dialect)
    except UnknownDialect:
        return False
    return True


def _accept_references(schema: Mapping[str, Any]) -> None:
    specification = specification_with(schema.get("$schema", DRAFT202012))
    resolver = Registry().resolver_with_root(specification.create_resource(dict(schema)))
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise UnusableSchemaError(
                f"it refers to {reference!r}; only references inside the schema (#...) are followed"
            )
        try:
            resolver.lookup(reference)
        except (Unresolvable, NoSuchResource) as error:
            raise UnusableSchemaError(f"its reference {reference!r} leads nowhere") from error


def _references(schema: Any) -> Iterator[str]:
    for mapping in _mappings(schema):
        yield from (mapping[key] for key in REFERENCES if isinstance(mapping.get(key), str))


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for child in _children(value):
        yield from _mappings(child)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()
