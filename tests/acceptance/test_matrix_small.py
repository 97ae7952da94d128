"""A slice of the planted-change matrix: the command itself, on a tiny model, in real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.planted.__main__ import main
from benchmarks.planted.change import ALONE, EAGER
from benchmarks.planted.grade import Mark, grade
from benchmarks.planted.row import Row, kept

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

MODEL, CHANGES = "llama-f32", "unchanged,flash,damage,kv-fp8,nan"


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    work = tmp_path_factory.mktemp("matrix")
    return ["--models", MODEL, "--canaries", "9", "--work", str(work), "--warm"]


@pytest.fixture(scope="module")
def rows(arguments: list[str]) -> dict[tuple[str, str], Row]:
    assert main(["run", *arguments, "--changes", CHANGES]) == 0
    return {(row.change, row.beside): row for row in results(arguments)}


def results(arguments: list[str]) -> list[Row]:
    return list(kept(Path(arguments[5]) / "results.jsonl").values())


def test_an_unchanged_replay_in_a_forked_process_matches_in_every_bit(rows: dict[tuple[str, str], Row]) -> None:
    assert (rows["unchanged", ALONE].verdict, rows["unchanged", ALONE].counts) == ("match", {"identical": 9})


def test_another_attention_kernel_is_rounding_and_accuses_no_block(rows: dict[tuple[str, str], Row]) -> None:
    row = rows["flash", ALONE]
    assert (row.stack, row.word, row.found) == ("different", "rounding", False)
    assert grade(row).mark in {Mark.HIT, Mark.FLIP}


@pytest.mark.parametrize("beside", [ALONE, EAGER])
def test_a_damaged_tensor_is_a_change_of_the_model(rows: dict[tuple[str, str], Row], beside: str) -> None:
    row = rows["damage", beside]
    assert (row.verdict, row.word) == ("drift", "model_or_input_change")
    assert row.planted
    if beside == ALONE:
        assert row.block == "model.layers.3"
    assert row.times is not None
    assert row.times > 100


def test_a_defect_that_only_the_native_path_has_is_told_from_a_change_of_the_model(
    rows: dict[tuple[str, str], Row],
) -> None:
    row = rows["kv-fp8", ALONE]
    assert (row.verdict, row.stack, row.word) == ("drift", "same", "native_path_defect")
    assert (row.reference_shift, row.planted) == (0.0, None)


def test_a_weight_that_is_not_a_number_is_broken(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["nan", ALONE].verdict == "broken"


def test_a_second_run_measures_nothing_and_judging_again_says_the_same(
    arguments: list[str], rows: dict[tuple[str, str], Row], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments, "--changes", CHANGES]) == 0
    assert capsys.readouterr().out == ""
    assert main(["judge", *arguments]) == 0
    assert {(row.change, row.beside): row for row in results(arguments)} == rows
