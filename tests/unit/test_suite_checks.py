"""Checks on output texts, and the bound on what a pattern may cost."""

from __future__ import annotations

from typing import Any

import pytest

from driftpin.suite import Check, CheckKind, run_check, run_checks
from driftpin.suite.pattern import MAX_CHARS, PatternError, compile_pattern
from driftpin.suite.schema import UnusableSchemaError, accept_schema

OBJECT = {
    "type": "object",
    "properties": {"n": {"$ref": "#/$defs/number"}},
    "required": ["n"],
    "$defs": {"number": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("kind", "value", "text", "passed", "said"),
    [
        (CheckKind.EXACT, "yes", " yes\n", True, "The output is 'yes'."),
        (CheckKind.EXACT, "yes", "yes, indeed", False, "The output is 'yes, indeed', not 'yes'."),
        (CheckKind.EXACT, "yes", "Yes", False, "not 'yes'"),
        (CheckKind.CONTAINS, "Paris", "In Paris.", True, "'Paris' is found at character 3."),
        (CheckKind.CONTAINS, "Paris", "paris", False, "'Paris' is not in the output 'paris'."),
        (CheckKind.REGEX, r"\b42\b", "It is 42.", True, "found at character 6"),
        (CheckKind.REGEX, r"\b42\b", "It is 421.", False, "is not found in the output"),
        (CheckKind.REGEX, r"^b", "a\nb", False, "is not found"),
        (CheckKind.JSON_SCHEMA, OBJECT, ' {"n": 1}\n', True, "satisfies the schema"),
        (CheckKind.JSON_SCHEMA, OBJECT, '{"n": "1"}', False, "at $.n, '1' is not of type 'integer'"),
        (CheckKind.JSON_SCHEMA, OBJECT, '{"n": 1} and more', False, "not JSON: Extra data at character 9"),
        (
            CheckKind.JSON_SCHEMA,
            OBJECT,
            '```json\n{"n": 1}\n```',
            False,
            "it stands in a ``` fence, and the check is strict",
        ),
        (CheckKind.JSON_SCHEMA, OBJECT, "", False, "not JSON"),
        (CheckKind.JSON_SCHEMA, {}, "NaN", False, "NaN is not JSON"),
        (CheckKind.JSON_SCHEMA, {}, "7" * 5000, None, "too long to read"),
        (CheckKind.JSON_SCHEMA, {}, "[" * 100_000, None, "RecursionError"),
        (CheckKind.JSON_SCHEMA, {"$ref": "#"}, "1", None, "RecursionError"),
    ],
)
def test_one_check(kind: CheckKind, value: Any, text: str, passed: bool | None, said: str) -> None:
    result = run_check(Check(kind=kind, value=value), text)
    assert result.passed is passed
    assert said in result.detail


def test_a_detail_quotes_little_of_a_long_output() -> None:
    result = run_check(Check(kind=CheckKind.CONTAINS, value="b"), "a" * 10_000)
    assert len(result.detail) < 200


def test_results_come_in_order_with_their_checks() -> None:
    checks = (Check(kind=CheckKind.CONTAINS, value="a"), Check(kind=CheckKind.EXACT, value="b"))
    results = run_checks(checks, "a")
    assert tuple(r.check for r in results) == checks
    assert [r.passed for r in results] == [True, False]
    assert run_checks((), "a") == ()


def test_a_text_that_is_too_long_for_a_pattern_is_not_tried() -> None:
    simple = Check(kind=CheckKind.REGEX, value="b")
    assert run_check(simple, "a" * (MAX_CHARS - 1) + "b").passed is True
    over = run_check(simple, "a" * MAX_CHARS + "b")
    assert over.passed is None
    assert f"output of {MAX_CHARS + 1} characters: the limit is {MAX_CHARS}" in over.detail
    free = Check(kind=CheckKind.REGEX, value="a.*a.*a.*b")  # a model that repeats one token would take hours
    assert run_check(free, "a" * 100).passed is False
    assert run_check(free, "a" * 5000).passed is None
    within = Check(kind=CheckKind.JSON_SCHEMA, value={"pattern": "a.*a.*a.*b"})
    assert run_check(within, '"' + "a" * 5000 + '"').passed is None


def test_an_exponential_pattern_is_never_run() -> None:
    """`compile_pattern` refuses it at load; a check made elsewhere is answered, not obeyed."""
    result = run_check(Check(kind=CheckKind.REGEX, value="(a+)+b"), "a" * 200)
    assert result.passed is None
    assert "was not tried: a repeat or a choice stands inside a repeat" in result.detail


@pytest.mark.parametrize(
    "source",
    [
        "(a+)+b",
        r"(\w+ ?)+!",
        "(a|ab)*c",
        "(?:a*,a*)*",
        "(.*,){11}P",
        "(a?){30}a",
        r"(\w+\s*)+!",
        "(?i)([a-k]+K)*",
        "(-?\\d+)*x",
    ],
)
def test_patterns_that_could_take_for_ever_are_refused(source: str) -> None:
    with pytest.raises(PatternError, match="inside a repeat"):
        compile_pattern(source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"^\d+(, \d+)*$", "1, 22, 333"),
        (r"(\d+\.){3}\d+", "10.0.0.1"),
        (r"(?:\s+\w+)+", " a bb"),
        (r"([^,]*,)*x", "a,b,x"),
        (r"(?>foo|bar)*x", "foobarx"),
        (r"(a++)+b", "aab"),
        (r"[abc]*(?:a|b|c)+", "abc"),
        (r'"name":\s*"\w+",\s*"age":\s*\d+', '{"name": "x", "age": 3}'),
        (r"(?m)^- \w+", "x\n- y"),
        (r"(?P<q>['\"]).*?(?P=q)", "'a'"),
        (r"(a)?(?(1)b|c)", "ab"),
        (r"(?<=x)y(?!z)", "xy"),
    ],
)
def test_patterns_of_daily_life_are_accepted(source: str, text: str) -> None:
    pattern = compile_pattern(source)
    assert pattern.compiled.search(text)
    assert not pattern.too_slow(200)


def test_steps_grow_with_the_free_repeats() -> None:
    assert compile_pattern("abc").steps(99) == 100
    assert compile_pattern("a*b").steps(99) == 100  # `a*` can end in one place only
    assert compile_pattern("a*a").steps(99) == 100**2
    assert compile_pattern(".*x.*y").steps(99) == 100**3
    assert compile_pattern("a?a").steps(99) == 200
    assert compile_pattern("a{2,4}a").steps(99) == 300


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "$ref": "#/definitions/a"},
        {"$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"},
        {"$ref": "#"},
        {"properties": {"pattern": {"type": "string"}}},
    ],
)
def test_schemas_that_are_accepted(schema: dict[str, Any]) -> None:
    accept_schema(schema)


def test_a_schema_may_be_nested_fifty_levels_deep() -> None:
    def nested(depth: int) -> dict[str, Any]:
        return {} if depth == 1 else {"not": nested(depth - 1)}

    accept_schema(nested(50))
    with pytest.raises(UnusableSchemaError, match="nested deeper than 50 levels"):
        accept_schema(nested(51))


@pytest.mark.parametrize("reference", ["other.json", "http://localhost/x", "file:///etc/passwd", "//x"])
def test_references_outside_the_schema_are_refused(reference: str) -> None:
    with pytest.raises(UnusableSchemaError, match="only references inside the schema"):
        accept_schema({"items": [{"$ref": reference}]} | {"type": "array"})
