"""Suite files: what is accepted, and that every refusal names the file, the canary and the field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftpin.canonical import canonical_json
from driftpin.errors import SuiteError
from driftpin.settings.starting import starter_suite
from driftpin.suite import Check, CheckKind, Message, builtin_suite, load_suite, suite_from_json

ONE = "name: s\ncanaries:\n  - id: a\n"


def write(folder: Path, text: str | bytes, name: str = "suite.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(folder: Path, text: str | bytes, name: str = "suite.yaml") -> str:
    path = write(folder, text, name)
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    message = str(caught.value)
    assert name in message
    message.encode()  # printable anywhere
    return message.removeprefix(str(path))


def test_a_yaml_suite(tmp_path: Path) -> None:
    suite = load_suite(
        write(
            tmp_path,
            """\
name: mine
clock: "2026-01-15T12:00:00"
defaults: {max_new_tokens: 7}
canaries:
  - id: raw
    prompt: "  two\\tspaces\\0 "
    checks: [{regex: '\\d+'}, {exact: "x"}]
  - id: chat.1
    messages: [{role: system, content: ""}, {role: user, content: "2024"}]
    settings: {max_new_tokens: 4096}
    checks: [{json_schema: {type: object}}]
    comment: why
""",
        )
    )
    raw, chat = suite.canaries
    assert (suite.name, suite.clock, suite.ids) == ("mine", "2026-01-15T12:00:00", ("raw", "chat.1"))
    assert raw.prompt == "  two\tspaces\0 "
    assert raw.messages == ()
    assert raw.settings.max_new_tokens == 7
    assert raw.checks == (Check(kind=CheckKind.REGEX, value=r"\d+"), Check(kind=CheckKind.EXACT, value="x"))
    assert chat.prompt is None
    assert chat.messages == (Message(role="system", content=""), Message(role="user", content="2024"))
    assert chat.settings.max_new_tokens == 4096
    assert chat.checks[0].value == {"type": "object"}
    assert chat.comment == "why"


def test_json_lines_with_and_without_a_first_line(tmp_path: Path) -> None:
    lines = '{"id": "a", "prompt": "x\u2028y"}\n\n{"id": "b", "prompt": "\\u0000"}\r\n'
    bare = load_suite(write(tmp_path, lines, "nightly.jsonl"))
    named = load_suite(write(tmp_path, '{"suite": "n", "clock": "2026-01-15T12:00:00"}\n' + lines, "x.jsonl"))
    assert (bare.name, bare.clock) == ("nightly", None)
    assert (named.name, named.clock) == ("n", "2026-01-15T12:00:00")
    assert bare.canaries == named.canaries
    assert [c.prompt for c in bare.canaries] == ["x\u2028y", "\0"]


def test_json_and_a_byte_order_mark(tmp_path: Path) -> None:
    text = json.dumps({"name": "s", "canaries": [{"id": "a", "prompt": "é"}]}, ensure_ascii=False)
    assert load_suite(write(tmp_path, b"\xef\xbb\xbf" + text.encode(), "s.json")) == load_suite(
        write(tmp_path, b"\xef\xbb\xbf" + text.encode(), "s.yaml")
    )


def test_the_order_of_keys_does_not_change_the_digest(tmp_path: Path) -> None:
    one = '{"id": "a", "prompt": "x", "settings": {"max_new_tokens": 3}, "checks": [{"json_schema": {"a": 1, "b": 2}}]}'
    two = '{"checks": [{"json_schema": {"b": 2, "a": 1}}], "settings": {"max_new_tokens": 3}, "prompt": "x", "id": "a"}'
    digests = {load_suite(write(tmp_path, text, "s.jsonl")).digest for text in (one, two)}
    assert len(digests) == 1
    other = load_suite(write(tmp_path, two.replace('"x"', '"y"'), "s.jsonl"))
    assert other.digest not in digests


def test_the_starter_suite_loads(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, starter_suite(), "sample.yaml"))
    assert (suite.name, suite.ids) == ("sample", ("capital", "digits", "continuation"))
    assert suite.canary("continuation").prompt == "Once upon a time, in a small harbour town,"


def test_the_stored_form_is_read_back() -> None:
    assert suite_from_json(builtin_suite().to_json()) == builtin_suite()
    assert suite_from_json(builtin_suite().to_json()).digest == builtin_suite().digest


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    prompt: x\n  - id: a\n    prompt: y\n", "canary 2, field id: 'a' is already the id of canary 1"),
        ("    comment: x\n", "canary 'a', give exactly one of prompt and messages; it has neither"),
        (
            "    prompt: x\n    messages: [{role: user, content: y}]\n",
            "canary 'a', give exactly one of prompt and messages; it has both",
        ),
        ('    prompt: ""\n', "canary 'a', field prompt: the prompt is empty"),
        ("    messages: []\n", "canary 'a', field messages: the prompt is empty"),
        ('    messages: [{role: user, content: ""}]\n', "field messages: the prompt is empty"),
        (
            "    prompt: 2024\n",
            "canary 'a', field prompt: must be text, but was read as the number 2024; put it in quotes",
        ),
        ("    prompt: yes\n", "field prompt: must be text, but was read as the truth value True; put it in quotes"),
        ("    prompt: 12:30\n", "field prompt: must be text, but was read as the number 750; put it in quotes"),
        (
            "    prompt: 2024-01-15\n",
            "field prompt: must be text, but was read as the date 2024-01-15; put it in quotes",
        ),
        ("    prompt: null\n", "field prompt: must be text, but was read as null; put it in quotes"),
        ("    prompt: [x]\n", "field prompt: must be text, but was read as a list"),
        (
            "    messages: [{role: user, content: no}]\n",
            "field messages.0.content: must be text, but was read as the truth",
        ),
        ("    messages: [{role: usr, content: x}]\n", "field messages.0.role: must be one of"),
        ("    messages: [{role: user}]\n", "field messages.0.content: is missing"),
        (
            "    messages: [{role: user, content: x, name: b}]\n",
            "messages.0.name: unknown field; known are role, content",
        ),
        (
            "    prompt: x\n    promt: y\n",
            "field promt: unknown field; known are id, prompt, messages, settings, checks",
        ),
        ("    prompt: x\n    max_new_tokens: 3\n", "unknown field (it belongs under settings)"),
        (
            "    prompt: x\n    settings: {temperature: 0}\n",
            "settings.temperature: unknown field; known are max_new_tokens",
        ),
        ("    prompt: x\n    settings: {max_new_tokens: 0}\n", "settings.max_new_tokens: must be from 1 to 4096, is 0"),
        ("    prompt: x\n    settings: {max_new_tokens: 4097}\n", "must be from 1 to 4096, is 4097"),
        ("    prompt: x\n    settings: {max_new_tokens: 3.0}\n", "must be a whole number"),
        ("    prompt: x\n    settings: {max_new_tokens: true}\n", "must be a whole number"),
        ('    prompt: x\n    settings: {max_new_tokens: "12"}\n', "settings.max_new_tokens: must be a whole number"),
        ("    prompt: x\n    settings: {max_new_tokens: 5000}\n", "must be from 1 to 4096, is 5000"),
        ("    prompt: x\n    checks: [{1: y}]\n", "field checks.0.1.[key]: must be text, but was read as the number 1"),
        (
            "    prompt: x\n    checks: [{matches: y}]\n",
            "field checks.0: unknown check kind 'matches'; known are json_schema",
        ),
        (
            "    prompt: x\n    checks: [{regex: y, exact: z}]\n",
            "checks.0: a check is one kind and its value, this has 2",
        ),
        ("    prompt: x\n    checks: [regex]\n", "field checks.0: must be a mapping"),
        (
            "    prompt: x\n    checks: [{contains: 42}]\n",
            "checks.0: contains: must be text, but was read as the number 42",
        ),
        ('    prompt: x\n    checks: [{contains: ""}]\n', "checks.0: contains: the text is empty"),
        (
            "    prompt: x\n    checks: [{regex: '('}]\n",
            "checks.0: regex: it is not a valid regular expression: missing )",
        ),
        (
            "    prompt: x\n    checks: [{regex: '(a+)+b'}]\n",
            "checks.0: regex: a repeat or a choice stands inside a repeat",
        ),
        (
            "    prompt: x\n    checks: [{json_schema: {type: objekt}}]\n",
            "json_schema: it is not a valid JSON schema: at $.type",
        ),
        ("    prompt: x\n    checks: [{json_schema: 'x'}]\n", "json_schema: a JSON schema is a mapping"),
        (
            "    prompt: x\n    checks: [{json_schema: {$ref: 'https://example.com/s'}}]\n",
            "it refers to 'https://example.com/s'; only references inside the schema",
        ),
        (
            "    prompt: x\n    checks: [{json_schema: {$ref: '#/$defs/a'}}]\n",
            "its reference '#/$defs/a' leads nowhere",
        ),
        (
            "    prompt: x\n    checks: [{json_schema: {$schema: 'draft-9'}}]\n",
            "its $schema 'draft-9' is not a published",
        ),
        (
            "    prompt: x\n    checks: [{json_schema: {pattern: '(a*)*'}}]\n",
            "its pattern '(a*)*': a repeat or a choice",
        ),
        (
            "    prompt: x\n    checks: [{json_schema: {const: 2024-01-15}}]\n",
            "canary 'a', field checks: a schema holds what JSON",
        ),
        ('    prompt: "ab\\ud800"\n', "canary 'a', field prompt: holds the lone surrogate U+D800 at character 2"),
        (
            '    messages: [{role: user, content: "\\udfff"}]\n',
            "field messages.0.content: holds the lone surrogate U+DFFF",
        ),
    ],
)
def test_a_canary_that_is_refused(tmp_path: Path, body: str, said: str) -> None:
    assert said in refusal(tmp_path, ONE + body)


@pytest.mark.parametrize("written", ["1.0e+16", "1.0e+20", "1152921504606846976.0", "1.0e+30", "10000000000000000"])
def test_whole_numbers_beyond_the_integers_of_json_survive_the_store(tmp_path: Path, written: str) -> None:
    text = ONE + f"    prompt: x\n    checks: [{{json_schema: {{items: {{enum: [{written}, 3, true]}}}}}}]\n"
    loaded = load_suite(write(tmp_path, text))
    stored = json.loads(canonical_json(loaded.to_json()))
    again = suite_from_json(stored)
    assert again == loaded
    assert again.digest == loaded.digest
    [large, small, truth] = again.canaries[0].checks[0].value["items"]["enum"]
    assert (type(large), large, type(small), truth) == (float, float(written), int, True)


def test_an_integer_that_no_double_holds_is_refused(tmp_path: Path) -> None:
    body = f"    prompt: x\n    checks: [{{json_schema: {{maximum: {2**53 + 1}}}}}]\n"
    assert "a schema holds what JSON cannot" in refusal(tmp_path, ONE + body)


@pytest.mark.parametrize("name", ["A", "-a", "a b", "", "a" * 65, "é", "a/b", "a\n"])
def test_an_id_that_is_refused(tmp_path: Path, name: str) -> None:
    said = refusal(
        tmp_path, json.dumps({"id": "ok", "prompt": "x"}) + "\n" + json.dumps({"id": name, "prompt": "x"}), "s.jsonl"
    )
    assert f"field id: {name!r} is not an id: lower-case letters" in said
    assert ("canary 2," if not name else f"canary {name!r},") in said


@pytest.mark.parametrize("name", ["a", "0", "a.b_c-d", "a" * 64])
def test_an_id_that_is_accepted(tmp_path: Path, name: str) -> None:
    assert load_suite(write(tmp_path, f'{{"id": "{name}", "prompt": "x"}}', "s.jsonl")).ids == (name,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", " is empty."),
        ("{}", " is empty."),
        ("name: s\ncanaries: []\n", "field canaries: the suite has no canary"),
        ("name: s\n", "field canaries: is missing"),
        ("canaries: [{id: a, prompt: x}]\n", "field name: is missing"),
        ("name: 7\ncanaries: [{id: a, prompt: x}]\n", "field name: must be text, but was read as the number 7"),
        ("name: s\nname: t\ncanaries: []\n", "not valid YAML: the key 'name' appears twice in one mapping at line 2"),
        (
            "name: s\ncanaries:\n- {id: a, prompt: x, prompt: y}\n",
            "the key 'prompt' appears twice in one mapping at line 3",
        ),
        ("name: s\nclock: soon\ncanaries: [{id: a, prompt: x}]\n", "field clock: 'soon' is not an ISO time"),
        (
            "name: s\nclock: 2026-01-15 12:00:00\ncanaries: [{id: a, prompt: x}]\n",
            "field clock: must be text, but was read as the datetime 2026-01-15 12:00:00; put it in quotes",
        ),
        (
            "name: s\ndefaults: {top_k: 1}\ncanaries: [{id: a, prompt: x}]\n",
            "defaults.top_k: unknown field; known are max_new",
        ),
        (
            "name: s\nextra: 1\ncanaries: [{id: a, prompt: x}]\n",
            "field extra: unknown field; known are name, clock, defaults",
        ),
        ("name: s\ncanaries: [a]\n", "canary 1, must be a mapping"),
        ("- a\n", "must be a mapping"),
        ("a: [\n", "is not valid YAML: "),
        ("name: a\n---\nname: b\n", "found another document"),
        ("name: !!python/object:os.system {}\n", "could not determine a constructor"),
        ("a: &a [*a]\n", "is nested deeper than 100 levels"),
        (
            "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
            "unfolds to more than 2000000 values",
        ),
        ("name: s\ncanaries: [{id: a, prompt: x\x07}]\n", "holds the character U+0007 at character 36"),
        ("name: 2024-13-45\n", "month must be in 1..12"),
        (b"name: s\ncanaries: [{id: a, prompt: \xff}]\n", "is not valid UTF-8: byte 0xff at offset 35."),
        ("a: " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert said in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "field canaries: the suite has no canary"),
        ('{"suite": "s"}\n', "field canaries: the suite has no canary"),
        ('{"id": "a", "prompt": "x"}\n{"id": \n', ", line 2 is not valid JSON"),
        ('{"id": "a", "id": "b", "prompt": "x"}\n', ", line 1 is not valid JSON: the key 'id' appears twice."),
        ('{"id": "a", "prompt": NaN}\n', ", line 1 is not valid JSON: NaN is not a JSON number."),
        ('{"id": "a", "prompt": 2024}\n', "canary 'a', field prompt: must be text, but was read as the number 2024"),
        ('{"id": "a", "prompt": "\\ud800"}\n', "field prompt: holds the lone surrogate U+D800 at character 0"),
        ('{"id": "a\\ud800", "prompt": "x"}\n', "field id: holds the lone surrogate U+D800 at character 1"),
        ('{"suite": "s", "clok": "x"}\n{"id": "a", "prompt": "x"}\n', "first line: unknown field clok"),
        ("[" * 100_000, ", line 1 is not usable JSON: it is nested too deeply"),
    ],
)
def test_json_lines_that_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text, "s.jsonl")


def test_every_problem_is_named(tmp_path: Path) -> None:
    said = refusal(tmp_path, "name: s\ncanaries:\n- {id: a, prompt: 1}\n- {id: b}\n- {id: c, prompt: x}\n")
    assert "has 2 problems" in said
    assert "canary 'a', field prompt" in said
    assert "canary 'b', give exactly one" in said
    assert "'c'" not in said


def test_many_problems_are_cut(tmp_path: Path) -> None:
    said = refusal(tmp_path, "name: s\ncanaries:\n" + "- {}\n" * 30)
    assert "has 30 problems" in said
    assert "and 10 more" in said


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"There is no suite file .*none\.yaml"):
        load_suite(tmp_path / "none.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(SuiteError, match=r"folder\.yaml cannot be read: Is a directory"):
        load_suite(tmp_path / "folder.yaml")
    with pytest.raises(SuiteError, match=r"suite\.txt is not a suite by its name"):
        load_suite(tmp_path / "suite.txt")


def test_yaml_merges_may_override_on_purpose(tmp_path: Path) -> None:
    text = "name: s\ncanaries:\n- &a {id: a, prompt: x, comment: c}\n- {<<: *a, id: b}\n"
    suite = load_suite(write(tmp_path, text))
    assert [(c.id, c.prompt, c.comment) for c in suite.canaries] == [("a", "x", "c"), ("b", "x", "c")]
