"""Request logs become suites, and suites become YAML that reads back equal."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftpin.errors import SuiteError
from driftpin.suite import (
    Canary,
    CanarySettings,
    Check,
    CheckKind,
    ImportReport,
    Message,
    Suite,
    builtin_suite,
    dump_suite,
    import_requests,
    load_suite,
    suite_from_json,
)
from driftpin.suite.document import parse_yaml

HELLO = [{"role": "user", "content": "Hello"}]


def imported(folder: Path, *lines: Any, name: str = "Requests 1.jsonl") -> ImportReport:
    path = folder / name
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return import_requests(path)


def test_a_realistic_log(tmp_path: Path) -> None:
    report = imported(
        tmp_path,
        {"model": "m", "messages": HELLO, "max_tokens": 64, "temperature": 0.7, "top_p": 0.9, "stream": True},
        {"custom_id": "job-1", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]},
        ], "max_completion_tokens": 10, "seed": 3}},
        {"time": "2026-01-15", "request": {"prompt": ["  raw"], "n": 2}, "response": {"choices": []}},
        {"request": json.dumps({"prompt": "as text", "max_tokens": 9999})},
        {"messages": HELLO, "temperature": 0},
    )  # fmt: skip
    first, second, third, fourth = report.suite.canaries
    assert report.suite.name == "requests-1"
    assert first.messages == (Message(role="user", content="Hello"),)
    assert first.settings.max_new_tokens == 64
    assert [m.content for m in second.messages] == ["Be brief.", "One\ntwo"]
    assert (second.settings.max_new_tokens, second.comment) == (10, "custom_id job-1")
    assert (third.prompt, third.settings.max_new_tokens) == ("  raw", 32)
    assert (fourth.prompt, fourth.settings.max_new_tokens) == ("as text", 4096)
    assert report.skipped == ((5, "the same prompt as line 1"),)
    assert report.dropped_settings == ("max_tokens", "n", "seed", "temperature", "top_p")


def test_ids_depend_on_the_prompt_alone(tmp_path: Path) -> None:
    one = imported(tmp_path, {"messages": HELLO, "max_tokens": 5}, {"prompt": "x"}).suite
    two = imported(tmp_path, {"prompt": "x"}, {"custom_id": "z", "body": {"messages": HELLO}}).suite
    assert one.ids == two.ids[::-1]
    assert all(name.startswith("req-") and len(name) == 16 for name in one.ids)


IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "its JSON is nested too deeply"),
        (b'{"prompt": "\xff"}', "not valid UTF-8 at byte 12 of the line"),
        (b'{"prompt": "\\ud800"}', "it holds a lone surrogate"),
        ({"input": "embed me"}, "it has neither messages nor prompt"),
        ({"prompt": ""}, "its prompt is empty"),
        ({"prompt": [1, 2]}, "its prompt is a list of token ids or of several prompts"),
        ({"prompt": 7}, "its prompt is not text"),
        ({"prompt": "a", "suffix": "b"}, "it asks for text between a prompt and a suffix"),
        ({"messages": []}, "its messages hold no text"),
        ({"messages": "x"}, "its messages are not a list of objects"),
        ({"messages": HELLO, "tools": [{"type": "function"}]}, "it offers tools"),
        ({"messages": HELLO, "functions": [{}]}, "it offers functions"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "it holds a content part of type 'image_url'"),
        ({"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}]}, "it holds tool calls"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "it holds tool calls"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "it has a message with the role 'bot'"),
        ({"messages": [{"role": "user"}]}, "it has a message without text"),
    ],
)
def test_a_line_that_is_skipped_says_why(tmp_path: Path, line: Any, reason: str) -> None:
    report = imported(tmp_path, line, {"prompt": "kept", "tools": [], "suffix": None})
    [(number, said)] = report.skipped
    assert number == 1
    assert reason in said
    assert [c.prompt for c in report.suite.canaries] == ["kept"]


def test_a_demanded_schema_becomes_a_check(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["city"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    report = imported(tmp_path, {"messages": HELLO, "response_format": wanted})
    assert report.suite.canaries[0].checks == (Check(kind=CheckKind.JSON_SCHEMA, value=schema),)
    assert report.dropped_settings == ("response_format",)
    wanted["json_schema"]["schema"] = {"type": "objekt"}  # type: ignore[index]
    assert imported(tmp_path, {"messages": HELLO, "response_format": wanted}).suite.canaries[0].checks == ()


@pytest.mark.parametrize("depth", [60, 900])
def test_a_schema_nested_too_deeply_is_dropped_not_fatal(tmp_path: Path, depth: int) -> None:
    schema = b'{"not":' * depth + b"{}" + b"}" * depth
    line = b'{"prompt": "x", "response_format": {"json_schema": {"schema": ' + schema + b"}}}"
    report = imported(tmp_path, line)
    assert report.suite.canaries[0].checks == ()
    assert report.dropped_settings == ("response_format", "response_format.json_schema")


def test_a_byte_order_mark_and_crlf_are_no_part_of_a_request(tmp_path: Path) -> None:
    report = imported(tmp_path, b'\xef\xbb\xbf{"prompt": "a"}\r', b"\r", b'{"prompt": "b"}\r')
    assert [c.prompt for c in report.suite.canaries] == ["a", "b"]
    assert report.skipped == ()


def test_the_name_of_a_dropped_setting_can_be_printed(tmp_path: Path) -> None:
    assert imported(tmp_path, b'{"prompt": "a", "\\ud800": 1}').dropped_settings == ("\\ud800",)


def test_a_lost_name_is_reported(tmp_path: Path) -> None:
    report = imported(tmp_path, {"messages": [{"role": "user", "content": "x", "name": "bob"}]})
    assert report.dropped_settings == ("messages.name",)


def test_a_log_without_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"holds no request that can be replayed\. Line 1: not valid JSON"):
        imported(tmp_path, b"nonsense")
    with pytest.raises(SuiteError, match="It is empty"):
        imported(tmp_path, b"")
    with pytest.raises(SuiteError, match=r"none\.jsonl cannot be read: No such file"):
        import_requests(tmp_path / "none.jsonl")


def test_what_was_imported_is_written_and_read_back(tmp_path: Path) -> None:
    suite = imported(tmp_path, {"messages": HELLO}, {"prompt": "\ttab\0 and 2024"}, b'{"prompt": "yes"}').suite
    path = tmp_path / "made.yaml"
    path.write_text(dump_suite(suite), encoding="utf-8")
    assert load_suite(path) == suite


def test_the_builtin_suite_survives_a_dump() -> None:
    assert suite_from_json(parse_yaml(dump_suite(builtin_suite()), "dump")) == builtin_suite()


NAMES = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    [
        "yes",
        "2024",
        "~",
        "null",
        "1e3",
        "12:30",
        "\0",
        "\x85",
        "\u2028",
        "\ufeff",
        "- a",
        "a: b",
        "#x",
        " \n",
        "'",
        "\U0001f600",
    ]
)
SOME = TEXT.filter(bool)
MESSAGES = st.lists(
    st.builds(Message, role=st.sampled_from(["system", "user", "assistant"]), content=SOME), min_size=1, max_size=3
)
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    TEXT | NUMBERS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
CHECKS = st.lists(
    st.builds(Check, kind=st.sampled_from([CheckKind.EXACT, CheckKind.CONTAINS]), value=SOME)
    | st.builds(Check, kind=st.just(CheckKind.JSON_SCHEMA), value=st.fixed_dictionaries({"const": VALUES})),
    max_size=2,
).map(tuple)


@st.composite
def suites(draw: st.DrawFn) -> Suite:
    canaries = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        prompt = draw(st.none() | SOME)
        canaries.append(
            Canary(
                id=name,
                prompt=prompt,
                messages=tuple(draw(MESSAGES)) if prompt is None else (),
                settings=CanarySettings(max_new_tokens=draw(st.integers(1, 4096))),
                checks=draw(CHECKS),
                comment=draw(TEXT),
            )
        )
    return Suite(name=draw(SOME), canaries=tuple(canaries), clock=draw(st.none() | st.just("2026-01-15T12:00:00")))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(suites())
def test_every_suite_survives_a_dump(suite: Suite) -> None:
    text = dump_suite(suite)
    again = suite_from_json(parse_yaml(text.encode().decode(), "dump"))
    assert again == suite
    assert again.digest == suite.digest
