"""Numbers in sentences."""

from __future__ import annotations

from driftpin.counting import canaries_counted, counted


def test_one_is_singular_and_everything_else_is_not() -> None:
    assert [counted(n, "target") for n in (0, 1, 2)] == ["0 targets", "1 target", "2 targets"]
    assert [canaries_counted(n) for n in (0, 1, 12)] == ["0 canaries", "1 canary", "12 canaries"]
