"""What the progress bar makes of a worker's steps."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from driftpin.cli import runs


def test_the_bar_names_the_block_while_one_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = io.StringIO()
    monkeypatch.setattr(runs, "errors", lambda: Console(file=seen, force_terminal=True, width=100))
    with runs.progress("reference arm of chat") as listener:
        for event in (
            {"event": "loading", "engine": "transformers"},
            {"event": "planned", "executions": 7},
            {"event": "block", "done": 1, "of": 2},
        ):
            listener(event)
    assert "reference arm of chat, block 2 of 2" in seen.getvalue()
    seen.truncate(0)
    with runs.progress("reference arm of chat") as listener:
        listener({"event": "planned", "executions": 7})
        listener({"event": "block", "done": 2, "of": 2})
        listener({"event": "done", "key": "a", "measured": True})
    assert "1/7" in seen.getvalue()
    assert "block" not in seen.getvalue()
