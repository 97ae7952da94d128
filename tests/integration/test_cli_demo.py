"""The demonstration works in its own folder, wherever variables point. What it measures: tests/acceptance."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftpin.cli.demonstration import STEPS, TARGET, _Demo
from driftpin.verdict.diagnosis import ChangeClass
from driftpin.verdict.kind import VerdictKind


def test_its_store_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTPIN_STORE__URL", f"sqlite:///{tmp_path}/mine.db")
    (tmp_path / "demo").mkdir()
    session, order = _Demo(tmp_path / "demo")._order(tmp_path, "sdpa")
    assert session.config().store_url() == f"sqlite:///{tmp_path}/demo/demo.db"
    assert order.target == TARGET


def test_it_shows_a_match_then_rounding_then_only_drift() -> None:
    match, rounding, *faults = [step.expected for step in STEPS]
    assert match == {VerdictKind.MATCH}
    assert rounding == {VerdictKind.NUMERIC, VerdictKind.DRIFT}
    assert all(expected == {VerdictKind.DRIFT} for expected in faults)
    words = [step.word for step in STEPS]
    assert words == [None, ChangeClass.ROUNDING, *[ChangeClass.MODEL_OR_INPUT_CHANGE] * len(faults)]
    assert [step.place for step in STEPS if step.place] == ["model.layers.14"]
