"""The matrix's own logic: which rows there are, what counts as a hit, what is kept, and what the table says."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.planted import benign as benign_changes
from benchmarks.planted.__main__ import BEGIN, END, chosen, main
from benchmarks.planted.change import ALONE, EAGER, HEAD, Kind
from benchmarks.planted.faults import faults
from benchmarks.planted.grade import Mark, grade
from benchmarks.planted.in_process import PATCHES
from benchmarks.planted.models import MODELS, named
from benchmarks.planted.prompts import Part, suite_of
from benchmarks.planted.row import Row, keep, kept
from benchmarks.planted.table import table
from runner.planting import PLANTS

RIGHT: dict[str, Any] = {
    "verdict": "drift",
    "counts": {"shifted": 3},
    "stack": "same",
    "word": "model_or_input_change",
    "found": True,
    "block": "model.layers.3",
}


def row(kind: Kind, at: str | None = "model.layers.3", change: str = "c", part: str = "held", **observed: Any) -> Row:
    verdicts = {Kind.BENIGN: ["match", "numeric"], Kind.FAULT: ["drift"], Kind.REFUSED: []}[kind]
    classes = ["model_or_input_change"] if kind is Kind.FAULT else ["rounding", "unsaid"]
    expected = {"verdicts": verdicts, "classes": classes, "block": at}
    return Row(
        model="m", part=part, change=change, beside=ALONE, what="w", kind=kind.value, expected=expected, **observed
    )


def fault(**observed: Any) -> Row:
    return row(Kind.FAULT, **{**RIGHT, **observed})


def benign(**observed: Any) -> Row:
    quiet = {"verdict": "numeric", "counts": {"numeric": 3}, "stack": "different", "word": "rounding", "found": False}
    return row(Kind.BENIGN, **{**quiet, **observed})


def marked(made: Row) -> tuple[Mark, str]:
    found = grade(made)
    return found.mark, "; ".join(found.against)


def test_a_fault_is_hit_by_verdict_class_and_place_together() -> None:
    assert marked(fault()) == (Mark.HIT, "")
    assert marked(fault(verdict="numeric")) == (Mark.MISS, "verdict numeric")
    assert marked(fault(word="rounding")) == (Mark.MISS, "called rounding")
    assert marked(fault(word=None)) == (Mark.MISS, "called unsaid")
    assert marked(fault(block="model.layers.2")) == (Mark.MISS, "place model.layers.2")


def test_broken_outranks_the_drift_that_was_expected_and_nothing_quieter_does() -> None:
    assert marked(fault(verdict="broken", counts={"broken": 3})) == (Mark.HIT, "")
    assert marked(fault(verdict="broken", counts={"broken": 3}, block="model.layers.2"))[0] is Mark.MISS
    assert marked(benign(verdict="broken", counts={"broken": 3}))[0] is Mark.MISS
    assert marked(fault(verdict="unstable"))[0] is Mark.MISS


def test_silence_about_the_place_is_allowed_on_a_changed_stack_only() -> None:
    assert marked(fault(found=False, block=None)) == (Mark.MISS, "place not found")
    assert marked(fault(found=False, block=None, stack="different"))[0] is Mark.HIT
    assert marked(fault(block="model.layers.0", stack="different"))[0] is Mark.MISS


def test_the_head_is_a_place_without_a_block() -> None:
    behind = {**RIGHT, "block": None}
    assert grade(row(Kind.FAULT, HEAD, **behind)).mark is Mark.HIT
    assert marked(row(Kind.FAULT, HEAD, **RIGHT)) == (Mark.MISS, "place model.layers.3")


def test_a_fault_below_the_yardstick_may_stay_unnamed_and_one_above_may_not() -> None:
    small = {"verdict": "numeric", "counts": {"numeric": 3}, "yardstick": 0.1}
    assert grade(fault(**small, shift=0.09)).mark is Mark.BELOW
    assert grade(fault(**small, shift=0.11)).mark is Mark.MISS
    # A flip on the same stack is a movement beyond F, whatever the mean says.
    assert grade(fault(**{**small, "counts": {"flip": 1}}, shift=0.0)).mark is Mark.MISS
    # Where the reference ran, it is the measure of a changed model.
    assert grade(fault(**small, shift=0.11, reference_shift=1e-6, reference_limit=2e-6)).mark is Mark.BELOW
    assert grade(fault(**small, shift=0.05, reference_shift=3e-6, reference_limit=2e-6)).mark is Mark.MISS


def test_a_cache_that_lies_far_from_the_reference_is_not_excused_by_scores_that_it_does_not_act_in() -> None:
    expected = {"verdicts": ["drift"], "classes": ["native_path_defect"], "block": None}
    quiet: dict[str, Any] = {"verdict": "numeric", "word": "rounding", "counts": {"numeric": 3}, "found": False}
    cache = replace(fault(), **quiet, expected=expected, shift=0.0, yardstick=1.0)
    assert marked(replace(cache, ratio=1.2))[0] is Mark.BELOW
    assert marked(replace(cache, ratio=1.43))[0] is Mark.MISS


def test_a_fault_that_does_not_act_through_numbers_is_never_excused_by_its_size() -> None:
    calm = {"word": "rounding", "counts": {"flip": 2}, "stack": "different", "reference_shift": 0.0}
    setting = replace(fault(**calm, reference_limit=1e-6), expected={**fault().expected, "always": True})
    assert marked(setting) == (Mark.MISS, "called rounding")
    assert grade(fault(**calm, reference_limit=1e-6)).mark is Mark.BELOW


def test_a_fault_that_changed_no_bit_must_look_like_nothing() -> None:
    assert grade(fault(planted=0, verdict="match", counts={"identical": 3}, word=None, found=None)).mark is Mark.VOID
    assert grade(fault(planted=0)).mark is Mark.MISS


def test_a_benign_change_may_flip_honestly_and_nothing_else() -> None:
    assert marked(benign()) == (Mark.HIT, "")
    assert marked(benign(verdict="drift", counts={"flip": 1, "tie_flip": 1, "numeric": 1})) == (Mark.FLIP, "")
    assert marked(benign(verdict="drift", counts={"flip": 1, "shifted": 1})) == (Mark.MISS, "verdict drift")
    assert marked(benign(verdict="drift", counts={"identical": 3})) == (Mark.MISS, "verdict drift")
    assert marked(benign(word="native_path_defect")) == (Mark.MISS, "called native_path_defect")
    assert marked(benign(found=True, block="model.layers.1")) == (Mark.MISS, "accuses model.layers.1")
    assert grade(benign(found=True, block="model.layers.1", stack="same")).mark is Mark.HIT


def test_what_cannot_run_is_right_only_where_that_was_expected() -> None:
    assert grade(row(Kind.REFUSED, failed="cannot run here")).mark is Mark.HIT
    assert marked(benign(failed="the worker died")) == (Mark.MISS, "did not run: the worker died")


def test_results_survive_an_interruption_in_mid_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    keep(path, fault(verdict="numeric"))
    keep(path, fault())
    with path.open("a") as stream:
        stream.write(json.dumps({"model": "m"})[:-3] + "\n")
    assert kept(path) == {("m", "held", "c", ALONE): fault()}


def test_the_parts_are_twelve_prompts_each_and_share_none() -> None:
    parts = [suite_of(part).canaries for part in Part]
    assert [len(canaries) for canaries in parts] == [12, 12, 12]
    assert len({c.prompt or c.messages for canaries in parts for c in canaries}) == 36
    assert len(suite_of(Part.HELD, 3).canaries) == 3


def asked(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"changes": "*", "beside": f"{ALONE},{EAGER}", "pairs": None, **given})


def test_every_change_stands_alone_and_on_eager_attention_but_for_those_of_attention_itself() -> None:
    rows = chosen(asked(), named("llama-bf16"))
    fault_rows = [(c.id, c.beside) for c in rows if c.kind is Kind.FAULT]
    assert len(fault_rows) == 2 * len(faults(named("llama-bf16"))) == len(set(fault_rows))
    quiet = [(c.id, c.beside) for c in rows if c.kind is not Kind.FAULT]
    assert {("padded", ALONE), ("padded", EAGER), ("static", EAGER), ("threads-2", EAGER)} < set(quiet)
    assert not {("unchanged", EAGER), ("eager", EAGER), ("flash", EAGER), ("aten-avx2-flash", EAGER)} & set(quiet)
    assert len(quiet) == len(set(quiet))
    assert all(c.recipe["attention"] == "eager" for c in rows if c.beside == EAGER)
    assert [c.id for c in chosen(asked(changes="int*", beside=ALONE), named("llama-bf16"))] == [
        "int8",
        "int6",
        "int5",
        "int4",
    ]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_every_planted_fault_exists_and_routers_only_where_there_are_experts(model: Any) -> None:
    made = faults(model)
    assert {c.plant for c in made if c.plant} <= set(PLANTS)
    assert any(c.plant == "router" for c in made) is model.experts
    assert {c.patch for c in made if c.patch} == set(PATCHES) - {"batched", "padded", "static_hidden"}


def test_caps_are_those_below_what_the_processor_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benign_changes, "cpu_flags", lambda: frozenset({"sse2", "avx2"}))
    ids = {c.id for c in benign_changes.benign(named("llama-bf16"), None)}
    assert {"onednn-max-avx2", "mkl-cbwr-compatible", "mkl-cbwr-avx2"} <= ids
    assert not [name for name in ids if "avx512" in name or name == "aten-avx2-flash"]


def test_other_library_versions_are_overlays_found_by_their_own_name(tmp_path: Path) -> None:
    (tmp_path / "old" / "transformers-4.57.6.dist-info").mkdir(parents=True)
    found = next(c for c in benign_changes.benign(named("llama-bf16"), tmp_path) if c.id == "transformers-4.57.6")
    assert found.variables == {"PYTHONPATH": str((tmp_path / "old").resolve())}
    assert found.kind is Kind.BENIGN


def test_a_version_older_than_the_architecture_must_refuse_it(tmp_path: Path) -> None:
    (tmp_path / "old" / "transformers-4.50.1.dist-info").mkdir(parents=True)
    kinds = {
        name: next(c.kind for c in benign_changes.benign(named(name), tmp_path) if c.id == "transformers-4.50.1")
        for name in ("gemma3-bf16", "qwen3-bf16")
    }
    assert kinds == {"gemma3-bf16": Kind.BENIGN, "qwen3-bf16": Kind.REFUSED}


def test_the_table_shows_every_row_and_tells_misses_with_their_size(tmp_path: Path) -> None:
    results, page = tmp_path / "results.jsonl", tmp_path / "page.md"
    keep(results, benign(change="calm", part="fresh", divergence=0.25, limit=0.5, shift=0.03, yardstick=0.02))
    missed = {"word": "rounding", "ratio": 1.5, "farther": 9, "asked": 12, "shift": 0.2, "yardstick": 0.02}
    keep(results, fault(part="fresh", **missed))
    keep(results, fault(**missed))
    keep(results, fault(part="fit"))
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nbehind\n", "utf-8")
    assert main(["table", "--results", str(results), "--write", str(page)]) == 0
    text = page.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.endswith("behind\n")
    assert "old" not in text
    assert table(list(kept(results).values())) in text
    for part in ("fresh", "held"):
        assert f"- m, {part}: **c**: called rounding (shift ÷ yardstick 10, ratio 1.5)" in text
    assert text.count("| 1.5 (9/12) | 0 | miss | miss | hit |") == 1  # once, with the marks of the three parts
    assert [line for line in text.splitlines() if "rows by mark" in line] == [
        f"**{title} part**, rows by mark:" for title in ("Fresh", "Held", "Fit")
    ]
