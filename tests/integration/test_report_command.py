"""`driftpin report`: what it writes, where, and what it says when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftpin.cli.app import run
from driftpin.cli.report import file_name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A starter whose target was blessed and then damaged and replayed."""
    root = tmp_path_factory.mktemp("report")
    config = root / "driftpin.toml"
    assert run(["init", str(root)]) == 0
    assert run(["--config", str(config), "baseline", "bless", "try-me"]) == 0
    config.write_text(config.read_text().replace("# options =", "options ="))
    assert run(["--config", str(config), "replay", "try-me"]) == 1
    return root


def command(folder: Path, *words: str) -> int:
    return run(["--config", str(folder / "driftpin.toml"), "report", *words])


def test_two_references_make_a_file_and_the_exit_code_is_about_the_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "drift.html"
    assert command(folder, "try-me@baseline", "try-me@last", "-o", str(target)) == 0
    page = target.read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "try-me@baseline" in page
    said = capsys.readouterr()
    assert said.out == ""
    assert f"wrote {target}" in said.err.replace("\n", "")
    assert "drift:" in said.err


def test_one_reference_is_held_against_its_own_baseline(folder: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    assert command(folder, "try-me@last", "-o", str(one)) == 0
    assert command(folder, "try-me@1", "try-me@last", "-o", str(two)) == 0
    assert one.read_bytes() == two.read_bytes()


def test_a_dash_writes_to_standard_output_and_nothing_else(
    folder: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "x.html"
    assert command(folder, "try-me@last", "-o", str(file)) == 0
    capfdbinary.readouterr()
    assert command(folder, "try-me@last", "-o", "-") == 0
    assert capfdbinary.readouterr().out == file.read_bytes()


def test_the_default_name_comes_from_both_sides(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(folder, "try-me@baseline", "try-me@last") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["driftpin-try-me-baseline-try-me-last.html"]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (("chat@2", "r-9f31"), "driftpin-chat-2-r-9f31.html"),
        (("../../etc", "a b;rm -rf"), "driftpin-etc-a-b-rm-rf.html"),
        (("日本", "-"), "driftpin-replay-replay.html"),
    ],
)
def test_a_file_name_holds_nothing_that_a_shell_obeys(labels: tuple[str, str], name: str) -> None:
    assert file_name(*labels) == name


def test_hidden_suites_stay_hidden(folder: Path, tmp_path: Path) -> None:
    config = folder / "driftpin.toml"
    written = config.read_text()
    hidden = written.replace('text = "show"', 'text = "hide"')
    assert hidden != written
    config.write_text(hidden)
    try:
        assert command(folder, "try-me@last", "-o", str(tmp_path / "h.html")) == 0
    finally:
        config.write_text(written)
    page = (tmp_path / "h.html").read_text("utf-8")
    assert "hidden for this suite" in page
    assert 'class="chip' not in page


def test_strict_and_named_canaries_are_passed_on(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "c.html"
    assert command(folder, "try-me@last", "--canary", "continuation", "--strict", "-o", str(target)) == 0
    page = target.read_text("utf-8")
    assert page.index('data-name="continuation"') < page.index('data-name="capital"')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody@last"], "no target"),
        (["try-me"], "is a target"),
        (["r-00000000"], "r-00000000"),
        (["try-me@last", "--canary", "captial"], "There are: capital"),
    ],
)
def test_an_unknown_reference_is_one_sentence(
    folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(folder, *words, "-o", "-") == 2
    found = capsys.readouterr()
    assert said in found.err
    assert "Traceback" not in found.err
    assert found.out == ""


def test_without_any_baseline_one_reference_is_not_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path)]) == 0
    assert run(["--config", str(tmp_path / "driftpin.toml"), "replay", "try-me"]) == 0
    assert command(tmp_path, "try-me@last", "-o", "-") == 2
    assert "driftpin baseline bless try-me" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(folder, "try-me@last", "-o", str(tmp_path / "no" / "such" / "x.html")) == 2
    said = capsys.readouterr().err
    assert "No such file or directory" in said
    assert "Traceback" not in said
