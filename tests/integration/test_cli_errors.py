"""Bad input through the real command line: one sentence, the documented exit code, and never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from driftpin.cli.app import run

Command = Callable[..., tuple[int, str, str]]
READING = (
    "replay nobody",
    "replays",
    "compare try-me@baseline try-me@last",
    "show try-me@last",
    "env show try-me@last",
    "env diff try-me@baseline try-me@last",
    "baseline list",
    "config check",
    "config show",
    "db check",
    "db size",
)


@pytest.fixture(scope="module")
def blessed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A starter with a blessed baseline and a replay."""
    root = tmp_path_factory.mktemp("blessed")
    assert run(["init", str(root)]) == 0
    assert run(["--config", str(root / "driftpin.toml"), "baseline", "bless", "try-me"]) == 0
    assert run(["--config", str(root / "driftpin.toml"), "replay", "try-me"]) == 0
    return root


@pytest.fixture
def folder(blessed: Path, tmp_path: Path) -> Path:
    """A copy of it, to spoil."""
    return Path(shutil.copytree(blessed, tmp_path / "work"))


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs one command line in the folder: exit code, standard output, standard error."""
    monkeypatch.chdir(folder)
    capsys.readouterr()

    def command(*arguments: str) -> tuple[int, str, str]:
        status = run(list(arguments))
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return command


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refused(found: tuple[int, str, str], *words: str) -> None:
    """Exit code 2, nothing on standard output, and the words on standard error."""
    status, out, err = found
    assert (status, out) == (2, ""), err
    assert [word for word in words if word not in err] == [], err


@pytest.mark.parametrize("line", ["nonsense", "replay", "replay --bad", "replays --limit many", "replays --format xml"])
def test_bad_usage_prints_a_usage_line(line: str, command: Command) -> None:
    refused(command(*line.split()), "Usage: ", "Error: ")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "suite check --model",
            "Give --model a value: run it on this model: a name of the configuration, or a folder.",
        ),
        ("compare --format", "Give --format a value: text for people, json for machines."),
    ],
)
def test_an_option_without_its_value_is_answered_with_what_it_wants(line: str, told: str, command: Command) -> None:
    refused(command(*line.split()), "requires an argument", told)


def test_bad_usage_through_a_real_process(tmp_path: Path) -> None:
    code = "from driftpin.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "nonsense"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Usage:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_line_does_not_need_click() -> None:
    code = "import sys; sys.modules['click'] = None; from driftpin.cli.app import run; sys.exit(run(['--help']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unknown_target_is_answered_with_the_known_ones(command: Command) -> None:
    refused(command("replay", "try-you"), '"try-you"', "try-me")


def test_an_unknown_setting_is_named_with_its_place(command: Command, folder: Path) -> None:
    edit(folder / "driftpin.toml", 'engine = "fake"', 'engine = "fake"\nsweet = "sample"')
    refused(command("config", "check"), "sweet", "driftpin.toml")


def test_duplicate_ids_are_named(command: Command, folder: Path) -> None:
    edit(folder / "suites" / "sample.yaml", "id: digits", "id: capital")
    refused(command("suite", "check", "suites/sample.yaml"), "capital")
    refused(command("replay", "try-me"), "capital")


def test_a_missing_suite_is_named(command: Command, folder: Path) -> None:
    (folder / "suites" / "sample.yaml").unlink()
    refused(command("replay", "try-me"), "sample.yaml")
    refused(command("config", "check", "--format", "json"), "sample.yaml")


def test_a_missing_configuration_says_what_to_do(command: Command, folder: Path) -> None:
    (folder / "driftpin.toml").unlink()
    refused(command("replay", "try-me"), "driftpin.toml", "driftpin init")


def test_broken_toml_is_refused_with_its_place(command: Command, folder: Path) -> None:
    (folder / "driftpin.toml").write_text("[store\n")
    refused(command("config", "show"), "driftpin.toml")


@pytest.mark.parametrize(
    ("revision", "words"), [("0001", ("driftpin db upgrade",)), ("9999", ("newer",))], ids=["old", "new"]
)
@pytest.mark.parametrize("line", ["replay try-me", "db check", "baseline list --format json"])
def test_a_database_of_another_schema_is_refused(
    line: str, revision: str, words: tuple[str, ...], command: Command, folder: Path
) -> None:
    with sqlite3.connect(folder / "driftpin.db") as conn:
        conn.execute("UPDATE driftpin_version SET version_num = ?", (revision,))
    conn.close()
    refused(command(*line.split()), *words)


@pytest.mark.parametrize("line", ["replay try-me", "db check", "db upgrade", "show try-me@last --format json"])
def test_a_file_that_is_no_database_is_refused_and_kept(line: str, command: Command, folder: Path) -> None:
    for name in ("driftpin.db", "driftpin.db-wal", "driftpin.db-shm"):
        (folder / name).unlink(missing_ok=True)
    (folder / "driftpin.db").write_text("not a database at all, " * 200)
    refused(command(*line.split()), "driftpin.db")
    assert (folder / "driftpin.db").read_text().startswith("not a database")


@pytest.mark.parametrize("line", ["db check", "compare try-me@baseline try-me@last"])
def test_a_corrupt_blob_is_refused_with_its_digest(line: str, command: Command, folder: Path) -> None:
    with sqlite3.connect(folder / "driftpin.db") as conn:
        [[digest]] = conn.execute("SELECT sha256 FROM blobs WHERE kind = 'suite'").fetchall()
        conn.execute("UPDATE blobs SET data = CAST('spoilt' AS BLOB) WHERE sha256 = ?", (digest,))
    conn.close()
    shown = digest.hex() if isinstance(digest, bytes) else digest
    refused(command(*line.split()), shown[:12], "Restore the store from a backup.")


def test_a_missing_model_folder_fails_in_the_real_child(command: Command, folder: Path) -> None:
    edit(folder / "driftpin.toml", 'engine = "fake"', 'engine = "transformers"\nmodel = "mine"')
    with (folder / "driftpin.toml").open("a") as file:
        file.write('\n[models.mine]\npath = "models/absent"\ndtype = "float32"\n')
    refused(command("replay", "try-me", "--format", "json"), "models/absent")


def test_a_fault_in_the_child_is_a_failed_replay_and_not_drift(command: Command, folder: Path) -> None:
    edit(folder / "driftpin.toml", 'engine = "fake"', 'engine = "fake"\noptions = { faults = { exit = "digits" } }')
    refused(command("replay", "try-me"), "failed", "driftpin show r-")


@pytest.mark.parametrize(
    "line",
    [
        "replay \udc80",
        "show \udcff@last",
        "show try-me@last --canary \udc80",
        "replays \udc80",
        "suite check \udc80.yaml",
    ],
)
def test_lone_surrogates_in_arguments_do_no_harm(line: str, command: Command) -> None:
    status, out, err = command(*line.split())
    assert status in {0, 2}
    (out + err).encode("utf-8")


def test_escape_sequences_from_outside_are_spelt_out(command: Command) -> None:
    status, _, err = command("show", "\x1b[31mred@last")
    assert status == 2
    assert "\x1b[31m" not in err


@pytest.mark.parametrize(
    "line", ["show nobody@last", "show try-me@9", "show r-ffffffff", "show try-me@last --canary x"]
)
def test_references_to_nothing_are_refused(line: str, command: Command) -> None:
    refused(command(*line.split(), "--format", "json"))


@pytest.mark.parametrize("line", READING)
def test_json_is_one_document_or_nothing(line: str, command: Command) -> None:
    status, out, _ = command(*line.split(), "--format", "json")
    if status == 2:
        assert out == ""
    else:
        assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize("line", READING)
def test_without_a_store_nothing_is_made_by_reading(line: str, command: Command, folder: Path) -> None:
    for path in folder.glob("driftpin.db*"):
        path.unlink()
    status, _, err = command(*line.split())
    if not line.startswith("config"):
        assert status == 2, err
    assert not (folder / "driftpin.db").exists()


def test_a_store_that_cannot_be_written_is_refused(command: Command, folder: Path) -> None:
    refused(command("--store", f"sqlite:///{folder}/absent/x.db", "replay", "try-me"), "absent")
    refused(command("--store", "mysql://somewhere/x", "db", "size"), "store.url", "postgresql://")


def test_init_overwrites_nothing(command: Command, folder: Path) -> None:
    before = (folder / "driftpin.toml").read_bytes()
    refused(command("init"), "driftpin.toml")
    assert (folder / "driftpin.toml").read_bytes() == before


def test_revert_to_a_baseline_that_is_not_there(command: Command) -> None:
    refused(command("baseline", "revert", "try-me", "--to", "7"), "7")


def test_an_interrupt_is_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), 2)

    monkeypatch.setattr("driftpin.cli.runs.run_order", interrupted)
    status, _, _ = command("replay", "try-me")
    assert status == 130


@pytest.mark.parametrize(
    "line", ["init taken/inner", "suite import requests.jsonl -o absent/x.yaml", "demo --folder taken/inner"]
)
def test_a_place_that_cannot_be_written_is_refused(line: str, command: Command, folder: Path) -> None:
    (folder / "taken").write_text("a file")
    (folder / "requests.jsonl").write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    refused(command(*line.split()), line.rsplit(maxsplit=1)[-1].partition("/")[0])


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_went_away_is_not_drift(form: str, folder: Path) -> None:
    code = "from driftpin.cli import main; main()"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code, "config", "show", "--format", form],
        cwd=folder,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, "Traceback" in done.stderr) == (141, False), done.stderr
