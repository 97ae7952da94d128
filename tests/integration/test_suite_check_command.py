"""`driftpin suite check` through the real command line, on the fake engine and on a tiny real model."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driftpin.cli.app import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json-shapes.md"
SAMPLE = "driftpin.toml"

SUITE = """\
name: turns
canaries:
  - {id: middle, prompt: "a prompt of more than sixty-four bytes, which a switch of the rope lies before",
     settings: {max_new_tokens: 6}}
  - {id: long, prompt: "%s", settings: {max_new_tokens: 6}}
"""

Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A starter's folder, to stand in."""
    monkeypatch.chdir(tmp_path)
    assert run(["init", "."]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `suite check`: exit code and the JSON body, or what was said on standard error."""

    def command(*arguments: str) -> tuple[int, Any]:
        status = run(["suite", "check", *arguments, "--format", "json"])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, json.loads(out) if out else err

    return command


def spoil(folder: Path, faults: str) -> None:
    path = folder / SAMPLE
    path.write_text(re.sub("# options = .*", f"options = {{ faults = {{ {faults} }} }}", path.read_text()))


def kinds(body: dict[str, Any]) -> list[str]:
    return [found["kind"] for found in body["findings"]]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The body of a starter's target, checked."""
    root = tmp_path_factory.mktemp("checked")
    out = io.StringIO()
    assert run(["init", str(root)]) == 0
    with contextlib.redirect_stdout(out):
        arguments = ["suite", "check", "--target", "try-me", "--format", "json"]
        assert run(["--config", str(root / SAMPLE), *arguments]) == 0
    body: dict[str, Any] = json.loads(out.getvalue())
    return body


def test_a_target_is_checked_on_its_own_suite(checked: dict[str, Any]) -> None:
    body, model = checked, checked["model"]
    assert (body["suite"], model["engine"], model["dtype"]) == ("sample", "fake", "float32")
    assert model["order"]["value"] == {"order": "reversed", "executions": 6, "dependent": []}
    assert model["lengths"] == {"unknown": "this engine has no configuration of a model"}
    margins = model["margins"]["value"]
    assert set(margins["canaries"]) == set(body["canaries"]) == set(model["tokens"])
    assert margins["limit"] == 2 / 1024  # each of two logits moves by one step of the fake model's grid
    assert sum(margins["bands"].values()) == sum(row["count"] for row in margins["histogram"]) == 3


def test_every_key_is_on_the_page(checked: dict[str, Any]) -> None:
    body = checked
    names = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    model = body["model"]
    margins = model["margins"]["value"]
    [one, *_] = margins["canaries"].values()
    parts = (body, body["findings"][0], model, model["order"]["value"], margins, margins["histogram"][0], one)
    assert {key for part in parts for key in part} - names == set()
    assert set(kinds(body)) - names == set()


def test_suites_are_found_by_file_and_by_name(command: Command, folder: Path) -> None:
    assert command("suites/sample.yaml")[1]["digest"] == command("sample")[1]["digest"]
    assert command("core")[1]["suite"] == command()[1]["suite"] == "core"
    status, said = command("simple")
    assert (status, 'no suite "simple"; did you mean "sample"' in " ".join(said.split())) == (2, True)


def test_without_a_configuration_a_name_is_no_suite(command: Command, folder: Path) -> None:
    (folder / SAMPLE).unlink()
    status, said = command("sample")
    assert status == 2
    assert "There is no suite file sample" in said
    assert command("core")[0] == 0


def test_strict_is_for_warnings(command: Command) -> None:
    assert command("sample")[0] == 0
    status, body = command("sample", "--strict")
    assert (status, body["exit_code"]) == (1, 1)
    assert command("core", "--strict")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--model", "nope"), "neither a folder nor a model"),
        (("--model", "x", "--target", "try-me"), "were both given"),
        (("--dtype", "float16"), "none was named"),
        (("--target", "nobody"), 'there is no target "nobody"'),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], sentence: str, command: Command) -> None:
    status, said = command(*arguments)
    assert status == 2
    assert sentence in " ".join(said.split())


def test_a_target_that_never_repeats_itself_is_not_blamed_on_the_order(command: Command, folder: Path) -> None:
    spoil(folder, 'flaky = "process"')
    status, body = command("--target", "try-me", "--strict")
    assert status == 1
    assert kinds(body).count("unrepeatable") == 3
    assert "order_dependent" not in kinds(body)
    assert [one["repeats"] for one in body["model"]["order"]["value"]["dependent"]] == [False] * 3


def test_a_canary_that_cannot_run_does_not_lose_the_others(command: Command, folder: Path) -> None:
    spoil(folder, 'unmeasured = "digits"')
    status, body = command("--target", "try-me")
    assert status == 0
    [finding] = [found for found in body["findings"] if found["kind"] == "unmeasured"]
    assert finding["canaries"] == ["digits"]
    assert "'digits' could not be run, decode:" in finding["sentence"]
    assert set(body["model"]["margins"]["value"]["canaries"]) == {"capital", "continuation"}


def test_an_ill_trace_is_told(command: Command, folder: Path) -> None:
    spoil(folder, "nan = { block = 1 }")
    _, body = command("--target", "try-me")
    assert kinds(body).count("ill") == 3
    assert body["model"]["margins"]["unknown"]


def test_a_model_that_does_not_run_is_an_error(command: Command, folder: Path) -> None:
    spoil(folder, 'missing_keys = ["blocks.1"]')
    status, said = command("--target", "try-me")
    assert status == 2
    assert "The model could not be replayed" in said


def test_hidden_text_stays_hidden(command: Command, folder: Path) -> None:
    path = folder / SAMPLE
    path.write_text(path.read_text().replace('text = "show"', 'text = "hide"'))
    (folder / "suites" / "sample.yaml").write_text(
        "name: sample\ncanaries: [{id: a, prompt: '2 + 2', checks: [{contains: never}]}]"
    )
    _, body = command("--target", "try-me")
    [failing] = [found for found in body["findings"] if found["kind"] == "check_fails"]
    assert failing["sentence"] == "The contains check of 'a' does not hold for this model."
    assert "top_text" not in json.dumps(body)
    assert body["model"]["order"] == {"unknown": "the suite has one canary, which nothing can precede"}


def test_the_screen_names_what_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["suite", "check", "--target", "try-me"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "in reversed order the 6 executions left the same bits" in said
    assert "against F = 0.00195 logits" in said
    assert "lengths not known: this engine has no configuration" in said
    assert "4 warnings, 2 notes" in said


def test_a_real_model_that_would_remember_its_longest_prompt(command: Command, folder: Path) -> None:
    """rope_type dynamic: transformers keeps the frequencies of the longest prompt; the runner puts them back."""
    from tiny_models import tiny_llama

    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    tiny_llama(folder / "dynamic", max_position_embeddings=64, rope_parameters=rope)
    (folder / "turns.yaml").write_text(SUITE % ("tell me more " * 12))
    status, body = command("turns.yaml", "--model", "dynamic")
    assert status == 0
    assert body["model"]["order"]["value"]["dependent"] == []
    assert "order_dependent" not in kinds(body)
    [rope_length] = body["model"]["lengths"]["value"]
    assert (rope_length["name"], rope_length["at"], rope_length["beyond"]) == ("rope dynamic", 64, ["middle", "long"])
    [short_wanted] = [f for f in body["findings"] if f["kind"] == "length_not_crossed"]
    assert "at most 60 tokens" in short_wanted["remedy"]
    assert "two_paths" in kinds(body)  # a decode's cache holds keys that were turned by other frequencies
