"""What templates do to values: everything is escaped, and a name that is missing is an error, never a blank."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from driftpin.report.page import environment, execution, fact_value


def rendered(source: str, **values: object) -> str:
    return environment().from_string(source).render(**values)


def test_values_are_escaped_and_tricks_are_spelt_out_without_asking() -> None:
    assert rendered("<p title='{{ x }}'>", x="'>\u202e<b>") == "<p title='&#39;&gt;\\u202e&lt;b&gt;'>"


def test_a_value_is_never_a_template() -> None:
    assert rendered("{{ x }}", x="{{ 7 * 7 }}") == "{{ 7 * 7 }}"


def test_what_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        rendered("{{ nothing }}")


@pytest.mark.parametrize(
    ("fact", "seen"),
    [
        (None, "absent"),
        ({"value": 3}, "3"),
        ({"value": "ab" * 32}, "abababababababab…"),
        ({"value": "ab" * 16}, "ab" * 16),
        ({"value": "x" * 999}, "x" * 300 + "…"),
        ({"value": None}, "None"),
        ({"unknown": "no permission"}, "unknown (no permission)"),
    ],
)
def test_facts_are_told_whole_unless_they_are_digests_or_very_long(fact: object, seen: str) -> None:
    assert fact_value(fact) == seen


@pytest.mark.parametrize(
    ("key", "seen"),
    [("a/b/decode/alone/0", "decode alone"), ("c/score/padded/2", "score padded, repeat 2")],
)
def test_an_execution_is_told_without_its_canary(key: str, seen: str) -> None:
    assert execution(key) == seen
