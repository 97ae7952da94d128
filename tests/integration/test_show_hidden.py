"""A suite that hides its text hides token ids, too: a tokenizer turns them back into text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftpin.cli.app import run


@pytest.mark.parametrize("text", ["show", "hide"])
def test_ids_are_shown_only_where_text_is(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(["init", "."])
    path = tmp_path / "driftpin.toml"
    path.write_text(path.read_text().replace('text = "show"', f'text = "{text}"'))
    assert run(["replay", "try-me"]) == 0
    capsys.readouterr()
    assert run(["show", "try-me@last", "--canary", "capital", "--format", "json"]) == 0
    [decode] = [one for one in json.loads(capsys.readouterr().out)["detail"] if "/decode/" in one["execution"]]
    shown = text == "show"
    assert {"prompt_ids", "rendered", "output"} & set(decode) == (
        {"prompt_ids", "rendered", "output"} if shown else set()
    )
    assert all(({"id", "text"} <= set(token)) is shown for token in decode["tokens"])
    assert all("logprob" in token for token in decode["tokens"])
    assert decode["prompt_tokens"] == 70
    assert run(["show", "try-me@last", "--canary", "capital"]) == 0
    assert "70 prompt tokens" in capsys.readouterr().out
