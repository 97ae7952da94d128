"""What changed between two revisions, and the advice on one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from driftpin.suite import (
    Canary,
    CanarySettings,
    Check,
    CheckKind,
    Message,
    Suite,
    SuiteChanges,
    builtin_suite,
    input_digest,
    suite_changes,
    suite_warnings,
)
from driftpin.suite.warnings import FEW_CANARIES
from driftpin.verdict.evidence import ALPHA


def suite(*canaries: Canary) -> Suite:
    return Suite(name="s", canaries=canaries)


A, B, C = (Canary(id=name, prompt=f"prompt {name}") for name in "abc")
CHECK = Check(kind=CheckKind.CONTAINS, value="x")


def test_nothing_changed() -> None:
    changes = suite_changes(suite(A, B), suite(B, replace(A, comment="order and comments do not count")))
    assert changes == SuiteChanges()
    assert not changes


def test_each_kind_of_change() -> None:
    new = suite(C, replace(B, settings=CanarySettings(max_new_tokens=8)), replace(A, checks=(CHECK,)))
    changes = suite_changes(suite(A, B, replace(C, id="gone")), new)
    assert changes == SuiteChanges(new=("c",), removed=("gone",), changed=("b",), checks_changed=("a",))
    assert changes


def test_prompt_and_checks_may_change_at_once() -> None:
    changes = suite_changes(
        suite(A), suite(Canary(id="a", messages=(Message(role="user", content="x"),), checks=(CHECK,)))
    )
    assert changes == SuiteChanges(changed=("a",), checks_changed=("a",))


def test_a_changed_clock_is_told() -> None:
    assert suite_changes(suite(A), replace(suite(A), clock="2026-01-15")).clock_changed


def test_the_builtin_suite_covers_what_it_promises() -> None:
    core = builtin_suite()
    assert core.name == "core"
    assert core.clock is not None
    assert suite_warnings(core) == ()
    assert len(core.canaries) == 12
    assert sum(c.settings.max_new_tokens for c in core.canaries) <= 400  # replays in seconds on two cores
    assert any(len(c.messages) > 2 for c in core.canaries)
    prompts = [c.prompt for c in core.canaries if c.prompt is not None]
    assert any(p.startswith(" ") and "\t" in p for p in prompts)
    assert any(not p.startswith(" ") for p in prompts)


def prompt_text(canary: Canary) -> str:
    return canary.prompt if canary.prompt is not None else "\n".join(m.content for m in canary.messages)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\b19\d\d\b[\s\S]*\b20\d\d\b",  # years
        r"\d{20}",  # long digit runs
        r"[?!]{4}",  # punctuation runs
        r"-{3,}",
        r"\A +\t+",  # leading spaces and tabs
        r"\n\t+",
        "[\U0001f300-\U0001faff]",  # emoji
        "\u200d",  # joined to one character
        "[\u4e00-\u9fff]",  # Chinese
        "[\u3040-\u309f]",  # Japanese
        "[\uac00-\ud7a3]",  # Korean
        r"[ -~\s]{1500}",  # clearly longer than 256 tokens
        r"Python function",  # code
        r"JSON object",  # structured output
    ],
)
def test_the_builtin_suite_meets_what_usually_breaks(pattern: str) -> None:
    assert any(re.search(pattern, prompt_text(canary)) for canary in builtin_suite().canaries)


def test_the_builtin_suites_structured_canary_has_a_schema() -> None:
    [check] = builtin_suite().canary("structured").checks
    assert check.kind is CheckKind.JSON_SCHEMA
    assert check.value["required"] == ["city", "country"]


def test_checks_and_comments_are_no_part_of_what_the_model_is_asked() -> None:
    asked = replace(A, checks=(CHECK,), comment="c")
    assert asked.definition() == A.definition()
    assert input_digest([1, 2], asked.settings) == input_digest((1, 2), A.settings)
    assert input_digest([1, 2], A.settings) != input_digest([2, 1], A.settings)
    assert input_digest([1, 2], A.settings) != input_digest([1, 2], CanarySettings(max_new_tokens=8))
    assert suite(asked).digest != suite(A).digest  # another revision all the same


def test_few_canaries_are_those_that_no_sign_test_can_condemn() -> None:
    assert 0.5**FEW_CANARIES <= ALPHA / 2 < 0.5 ** (FEW_CANARIES - 1)


def test_a_poor_suite_is_told_what_it_misses() -> None:
    said = " ".join(suite_warnings(suite(Canary(id="a", prompt="hello"))))
    for gap in ("longer than 256 tokens", "digits", "ASCII", "json_schema", f"Fewer than {FEW_CANARIES}"):
        assert gap in said


def test_a_slow_suite_is_told() -> None:
    slow = Check(kind=CheckKind.REGEX, value="a.*b.*c")
    many = CanarySettings(max_new_tokens=3000)
    said = suite_warnings(suite(replace(A, settings=many, checks=(slow,)), replace(A, id="twin")))
    assert any("generates up to 3032 tokens" in sentence for sentence in said)
    assert "Canary 'a': regex 'a.*b.*c' will not be tried on an output of full length." in said
    assert "Canaries 'a' and 'twin' have the same prompt." in said
