"""Remembered file hashes: right, quick, and forgotten as soon as the file is touched."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from driftpin.settings.cache import cache_folder
from runner.capture import files
from runner.capture.files import file_sha256
from runner.capture.weights import configuration_facts, weight_facts

RIGHT = hashlib.sha256(b"weights").hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIFTPIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    return path


def plant(wrong: str, cache: Path) -> None:
    """Replace what is remembered, so that a later answer tells whether the memory was used."""
    (note,) = (cache / "sha256").iterdir()
    note.write_text(wrong)


def test_an_untouched_file_is_not_read_again(weights: Path, cache: Path) -> None:
    assert file_sha256(weights, settle_ns=0) == RIGHT
    plant("0" * 64, cache)
    assert file_sha256(weights) == "0" * 64


def test_verify_reads_in_full_and_corrects_what_is_remembered(weights: Path, cache: Path) -> None:
    file_sha256(weights, settle_ns=0)
    plant("0" * 64, cache)
    assert file_sha256(weights, verify=True, settle_ns=0) == RIGHT
    assert file_sha256(weights) == RIGHT


@pytest.mark.parametrize("touch", ["mtime", "ctime", "size", "replaced"])
def test_a_touched_file_is_read_again(weights: Path, cache: Path, touch: str) -> None:
    stamp = weights.stat()
    file_sha256(weights, settle_ns=0)
    plant("0" * 64, cache)
    expected = RIGHT
    if touch == "mtime":
        os.utime(weights, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1_000_000_000))
    elif touch == "ctime":  # the content changes and the mtime is put back, as an unpacking tool would
        weights.write_bytes(b"WEIGHTS")
        os.utime(weights, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        expected = hashlib.sha256(b"WEIGHTS").hexdigest()
        if weights.stat().st_ctime_ns == stamp.st_ctime_ns:
            pytest.skip("the file system's clock did not tick in between")
    elif touch == "size":
        weights.write_bytes(b"weights!")
        expected = hashlib.sha256(b"weights!").hexdigest()
    else:
        fresh = weights.with_name("fresh")
        fresh.write_bytes(b"weights")
        os.replace(fresh, weights)
    assert file_sha256(weights) == expected


def test_a_file_written_a_moment_ago_is_not_remembered(weights: Path, cache: Path) -> None:
    assert file_sha256(weights, settle_ns=3600 * 10**9) == RIGHT
    assert not (cache / "sha256").exists()


def test_a_damaged_note_is_not_believed(weights: Path, cache: Path) -> None:
    file_sha256(weights, settle_ns=0)
    plant("rubbish", cache)
    assert file_sha256(weights) == RIGHT


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(weights: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "write_atomically", refuse)
    assert file_sha256(weights, settle_ns=0) == RIGHT


def refuse(path: Path, text: str) -> None:
    raise PermissionError(path, text)


def test_facts_of_a_folder(weights: Path) -> None:
    folder = weights.parent
    (folder / "config.json").write_text("{}")
    (folder / "modeling_own.py").write_text("x = 1")
    assert weight_facts([weights]) == {"weights.model.safetensors": RIGHT}
    assert configuration_facts(folder, code=False) == {"config.file": hashlib.sha256(b"{}").hexdigest()}
    assert set(configuration_facts(folder, code=True)) == {"config.file", "config.code.modeling_own.py"}


def test_the_cache_folder_follows_the_environment() -> None:
    assert cache_folder({"DRIFTPIN_CACHE": "a/b", "XDG_CACHE_HOME": "c"}) == Path("a/b")
    assert cache_folder({"XDG_CACHE_HOME": "c"}) == Path("c/driftpin")
    assert cache_folder({"DRIFTPIN_CACHE": ""}) == Path.home() / ".cache" / "driftpin"


def test_a_hash_remembered_a_week_ago_is_not_believed(weights: Path, cache: Path) -> None:
    assert file_sha256(weights, settle_ns=0) == RIGHT
    plant("0" * 64, cache)
    (note,) = (cache / "sha256").iterdir()
    old = note.stat().st_mtime - files.WEEK_SECONDS - 60
    os.utime(note, (old, old))
    assert file_sha256(weights, settle_ns=0) == RIGHT
