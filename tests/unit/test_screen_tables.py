"""Tables at 80 columns: ids, times and digests stay in one piece; a digest among facts shows its first digits."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from driftpin.cli import screens

REPLAY = {
    "replay": "r-73cf32be",
    "target": "a-target-with-a-long-name",
    "status": "finished",
    "verdict": "unblessed",
    "created_at": "2026-12-01T04:14:29.123456+00:00",
    "purpose": "reference",
    "trace_set": "b769197ba817" + "0" * 52,
    "reason": None,
}
BASELINE = {
    "target": "try-me",
    "number": 12,
    "current": True,
    "device_class": "cpu avx2 avx512f avx512_bf16 amx_tile amx_int8",
    "replay": "r-7cae1134",
    "blessed_by": "someone",
    "reason": "the driver was upgraded on all hosts of this class",
    "created_at": "2026-12-01T04:14:29.123456+00:00",
}


def drawn(draw: Callable[..., None], *values: Any) -> list[str]:
    out = io.StringIO()
    draw(Console(file=out, width=80, highlight=False, emoji=False), *values)
    return out.getvalue().splitlines()


def test_a_replay_s_id_time_and_digest_are_whole_and_its_name_folds() -> None:
    lines = drawn(screens.replays, [REPLAY])
    text = "\n".join(lines)
    for whole in ("r-73cf32be", "finished", "unblessed", "2026-12-01 04:14", "b769197ba817"):
        assert whole in lines[1], text
    assert all(len(line) <= 80 for line in lines)
    begin = lines[0].index("target")
    name = "".join(line[begin : lines[0].index("status")].strip() for line in lines[1:])
    assert name == "a-target-with-a-long-name"


def test_a_baseline_s_label_replay_and_time_are_whole() -> None:
    lines = drawn(screens.baselines, [BASELINE])
    for whole in ("try-me@12", "r-7cae1134", "2026-12-01 04:14"):
        assert sum(whole in line for line in lines) == 1
    assert all(len(line) <= 80 for line in lines)
    assert "…" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"value": "0123456789abcdef" * 4}, "0123456789ab"),
        ({"value": "0123456789abcdef" * 2 + "01234567"}, "0123456789ab"),  # a commit
        ({"value": "0123456789abcdef"}, "0123456789abcdef"),  # 64 bits are no digest
        ({"value": "x" * 60}, "x" * 45 + "…"),
        ({"unknown": "no driver"}, "unknown (no driver)"),
        (None, "absent"),
    ],
)
def test_a_fact_s_value(value: Any, shown: str) -> None:
    fact = {"section": "model", "name": "weights", "kind": "changed", "before": value, "after": {"value": 1}}
    [_, line] = drawn(screens.environment_difference, {"equality": {"model": "different"}, "facts": [fact]})
    assert line.strip() == f"model: weights changed: {shown} -> 1"
