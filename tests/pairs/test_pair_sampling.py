"""Both sampling modes in the pair, for settings in either of the two files that a model may have them in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from pair_suite import LONG, decode, engine

from driftpin.settings.recipe import Sampling
from driftpin.trace.probe import Greedy

PENALTY = {"repetition_penalty": 5.0}


def changed(folder: Path, target: Path, file: str, **values: Any) -> Path:
    """A copy of a model with more in one of its JSON files."""
    shutil.copytree(folder, target)
    path = target / file
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return target


def tokens(folder: Path, sampling: Sampling = Sampling.CLEAN) -> list[int]:
    trace = decode(engine(folder, sampling=sampling), LONG)
    assert set(trace.head.greedy.tolist()) == {Greedy.PROVEN}
    return trace.head.output_ids.tolist()


def test_a_penalty_in_the_generation_file_acts_only_as_shipped(llama_folder: Path, tmp_path: Path) -> None:
    folder = changed(llama_folder, tmp_path / "penalised", "generation_config.json", **PENALTY)
    assert tokens(folder) == tokens(llama_folder)
    assert tokens(folder, Sampling.AS_SHIPPED) != tokens(llama_folder)


def test_a_penalty_in_the_models_configuration_acts_only_as_shipped(llama_folder: Path, tmp_path: Path) -> None:
    """A legacy that every version reads where there is no generation_config.json."""
    folder = changed(llama_folder, tmp_path / "legacy", "config.json", **PENALTY)
    assert tokens(folder, Sampling.AS_SHIPPED) == tokens(llama_folder)  # the generation file hides it
    (folder / "generation_config.json").unlink()
    assert tokens(folder) == tokens(llama_folder)
    assert tokens(folder, Sampling.AS_SHIPPED) != tokens(llama_folder)


def test_an_empty_file_reports_nothing(llama_folder: Path) -> None:
    """Library defaults differ between versions and must not look like a difference of models."""
    report = engine(llama_folder)._sampling
    assert report is not None
    parts = (report.in_force, report.asked, report.file_acts, report.file_inert, report.file_unclassified)
    assert [dict(part) for part in parts] == [{}] * 5
    assert set(report.facts()) <= {"sampling.mode", "sampling.end_ids", "sampling.overridden.use_cache"}


def test_a_plain_call_of_generate_is_greedy_too(llama_folder: Path, tmp_path: Path) -> None:
    """What a call leaves unset comes from the model: a legacy configuration must not come back through it."""
    file = {"do_sample": True, "temperature": 5.0, "top_k": 50}
    folder = changed(llama_folder, tmp_path / "sampling", "generation_config.json", **file)
    made = engine(folder)
    assert made._loaded is not None
    model, rendered = made._loaded.model, made.render(LONG, None)
    ids = torch.tensor([rendered.ids])
    with torch.inference_mode():
        emitted = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40)
    assert emitted[0, ids.shape[1] :].tolist() == tokens(llama_folder)
    assert model.generation_config.do_sample is False


@pytest.mark.parametrize("name", ["do_sample", "num_beams"])
def test_a_file_that_is_not_greedy_is_refused_as_shipped(llama_folder: Path, tmp_path: Path, name: str) -> None:
    from driftpin.errors import CannotMeasureError

    value = {"do_sample": True, "num_beams": 3}[name]
    folder = changed(llama_folder, tmp_path / name, "generation_config.json", **{name: value})
    with pytest.raises(CannotMeasureError, match=name):
        engine(folder, sampling=Sampling.AS_SHIPPED)
