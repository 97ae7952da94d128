"""`driftpin doctor`: the pipeline really runs, a broken check never passes, and the user's store is left alone."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from driftpin.cli import checkup
from driftpin.cli.app import run
from driftpin.cli.session import Session
from driftpin.errors import StoreError


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, an empty cache, no NVIDIA program on the path."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("DRIFTPIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DRIFTPIN_CONFIG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "work"


def test_the_whole_command(
    empty_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTPIN_STORE__URL", f"sqlite:///{empty_folder}/mine.db")
    monkeypatch.setattr(checkup, "ROOM", 0)
    status = run(["doctor", "--format", "json"])
    body = json.loads(capsys.readouterr().out)
    found = {one["name"]: one for one in body["findings"]}
    assert status == body["exit_code"] == 0
    assert found["pipeline"]["ok"] is True
    assert found["torch"]["ok"] is True
    assert found["configuration"]["ok"] is None
    assert list(empty_folder.iterdir()) == []  # the pipeline wrote to no store of the user's


def test_the_pipeline_says_when_a_fault_goes_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "FAULT", "")
    found = checkup.pipeline()
    assert found.ok is False
    assert "a damaged weight is a match, not drift" in found.detail


def test_the_pipeline_says_when_the_wrong_block_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "FAULT", checkup.FAULT.replace("block = 2", "block = 1"))
    found = checkup.pipeline()
    assert found.ok is False
    assert "a fault in block 2 is located so: the difference enters in blocks.1" in found.detail


def test_a_check_that_breaks_is_unknown_with_its_reason() -> None:
    def breaks() -> checkup.Finding:
        raise ZeroDivisionError("by nothing")

    found = checkup.guarded("sample", breaks)
    assert (found.ok, found.broken) == (None, True)
    assert "ZeroDivisionError: by nothing" in found.detail
    assert checkup.exit_code([found]) == 3


def test_a_refusal_is_a_failure_with_its_remedy() -> None:
    def refuses() -> checkup.Finding:
        raise StoreError("The store is gone.", remedy="Look for it.")

    found = checkup.guarded("sample", refuses)
    assert (found.ok, found.detail, found.remedy) == (False, "The store is gone.", "Look for it.")


@pytest.mark.parametrize(("oks", "status"), [([True], 0), ([True, None], 0), ([True, None, False], 1), ([], 0)])
def test_exit_codes(oks: list[bool | None], status: int) -> None:
    assert checkup.exit_code([checkup.Finding(name="x", ok=ok, detail="") for ok in oks]) == status


def test_a_missing_package_fails_with_a_remedy() -> None:
    found = checkup.distribution("driftpin-no-such-package")
    assert (found.ok, found.detail, found.remedy) == (False, "not installed", "Run `make setup`.")


def test_no_driver_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    assert checkup.cuda_driver().ok is None


@pytest.mark.parametrize(("status", "ok"), [(0, True), (9, False)])
def test_a_driver_that_answers_and_one_that_does_not(status: int, ok: bool, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho 'NVIDIA H200, 580.10'\nexit {status}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    found = checkup.cuda_driver()
    assert (found.ok, found.detail) == (ok, "NVIDIA H200, 580.10")


def test_a_cache_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    found = checkup.cache()
    assert (found.ok, found.remedy) == (False, "Name another folder in DRIFTPIN_CACHE.")


def test_too_little_room_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "ROOM", 10**18)
    assert checkup.cache().ok is False


def test_configuration_and_store_of_a_starter(empty_folder: Path) -> None:
    assert run(["init"]) == 0
    assert checkup.configuration(Session()).ok is True
    assert checkup.store(Session()).ok is None
    assert run(["db", "upgrade"]) == 0
    assert checkup.store(Session()).ok is True
    (empty_folder / "suites" / "sample.yaml").unlink()
    assert checkup.guarded("configuration", lambda: checkup.configuration(Session())).ok is False
