"""A whole environment of a tiny real model: what changes in it when one thing in the world changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from driftpin.environment import Environment, Equality, Section, Unknown, difference, equalities
from driftpin.settings.recipe import Recipe, Sampling
from driftpin.trace.probe import Arm
from runner.capture import capture as module
from runner.capture import capture_environment
from runner.loading import Loaded, load_model
from runner.sampling import install


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer = Tokenizer(models.BPE(vocab={chr(33 + i): i for i in range(64)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(path / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ messages }}", "pad_token": "!"}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path


@pytest.fixture(autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTPIN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(module, "isa_facts", lambda: {"isa.aten": "AVX2"})  # the verbose run has tests of its own


@pytest.fixture
def recipe(folder: Path) -> Recipe:
    return Recipe(engine="transformers", model="tiny", path=str(folder))


@pytest.fixture
def loaded(recipe: Recipe) -> Loaded:
    return load_model(recipe, Arm.NATIVE)


def changed(a: Environment, b: Environment) -> list[str]:
    return [entry.name for entry in difference(a, b)]


def test_nothing_changed_means_no_difference_and_equal_digests(loaded: Loaded, recipe: Recipe) -> None:
    a = capture_environment(loaded, recipe, Arm.NATIVE)
    b = capture_environment(load_model(recipe, Arm.NATIVE), recipe, Arm.NATIVE)
    assert difference(a, b) == ()
    assert a.digests == b.digests
    assert set(equalities(a, b).values()) == {Equality.SAME}
    assert a.context["now.ordinal"] < b.context["now.ordinal"]


def test_an_environment_survives_json(loaded: Loaded, recipe: Recipe) -> None:
    made = capture_environment(loaded, recipe, Arm.NATIVE)
    hashed, context = (json.loads(json.dumps(v)) for v in (made.hashed_to_json(), made.context_to_json()))
    assert Environment.from_json(hashed, context).digests == made.digests


def test_a_changed_variable_is_the_first_difference_of_the_stack(
    loaded: Loaded, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = capture_environment(loaded, recipe, Arm.NATIVE)
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    b = capture_environment(loaded, recipe, Arm.NATIVE)
    (found,) = difference(a, b)
    assert (found.section, found.name, found.before, found.after) == (Section.STACK, "variable.MKL_CBWR", None, "AVX2")


def test_a_flipped_bit_in_memory_changes_parameters_and_no_file(loaded: Loaded, recipe: Recipe) -> None:
    a = capture_environment(loaded, recipe, Arm.NATIVE)
    with torch.no_grad():
        loaded.model.model.layers[1].mlp.up_proj.weight.view(torch.int32)[0, 0] ^= 1
    b = capture_environment(loaded, recipe, Arm.NATIVE)
    assert changed(a, b) == ["parameters.model.layers.1", "parameters.total"]
    assert equalities(a, b)[Section.MODEL] is Equality.DIFFERENT
    assert a.digest(Section.STACK) == b.digest(Section.STACK)


def test_the_arms_differ_in_precision(folder: Path) -> None:
    recipe = Recipe(engine="transformers", model="tiny", path=str(folder), dtype="bfloat16", sdpa="flash")
    native, reference = (capture_environment(load_model(recipe, arm), recipe, arm) for arm in Arm)
    assert native.stack["dtype"] == "bfloat16"
    assert reference.stack["dtype"] == "float32"
    assert (native.stack["attention.score"], reference.stack["attention.score"]) == ("flash", "math")
    assert list(native.model["parameters.dtypes"]) == ["bfloat16"]
    assert native.model["weights.model.safetensors"] == reference.model["weights.model.safetensors"]


def test_attention_and_flags_are_read_back(loaded: Loaded, recipe: Recipe) -> None:
    a = capture_environment(loaded, recipe, Arm.NATIVE)
    before = torch.backends.cudnn.benchmark
    loaded.model.set_attn_implementation("eager")
    torch.backends.cudnn.benchmark = not before
    try:
        b = capture_environment(loaded, recipe, Arm.NATIVE)
    finally:
        torch.backends.cudnn.benchmark = before
    assert changed(a, b) == ["attention.implementation", "flag.cudnn.benchmark"]


def test_a_used_tokenizer_is_still_the_same_tokenizer(loaded: Loaded, recipe: Recipe) -> None:
    a = capture_environment(loaded, recipe, Arm.NATIVE)
    loaded.tokenizer(["AB", "ABC"], padding=True, truncation=True, max_length=2)
    assert changed(a, capture_environment(loaded, recipe, Arm.NATIVE)) == []
    loaded.tokenizer.chat_template = "{{ messages }} "
    assert changed(a, capture_environment(loaded, recipe, Arm.NATIVE)) == ["template"]
    loaded.tokenizer.backend_tokenizer.add_tokens(["new"])
    assert changed(a, capture_environment(loaded, recipe, Arm.NATIVE)) == ["template", "tokenizer.backend"]


def test_what_the_generation_file_would_apply_is_a_model_fact(folder: Path, loaded: Loaded, recipe: Recipe) -> None:
    loaded.model.generation_config = GenerationConfig(repetition_penalty=1.5)
    report = install(loaded.model, recipe)
    clean = capture_environment(loaded, recipe, Arm.NATIVE, sampling=report)
    assert clean.model["sampling.file.repetition_penalty"] == "1.5"
    assert "sampling.in_force.repetition_penalty" not in clean.model
    shipped = Recipe(engine="transformers", model="tiny", path=str(folder), sampling=Sampling.AS_SHIPPED)
    loaded.model.generation_config = GenerationConfig(repetition_penalty=1.5)
    acting = capture_environment(loaded, shipped, Arm.NATIVE, sampling=install(loaded.model, shipped))
    assert acting.model["sampling.in_force.repetition_penalty"] == "1.5"


def test_an_unreadable_file_is_unknown_with_its_reason_in_the_context(loaded: Loaded, recipe: Recipe) -> None:
    (path,) = loaded.files
    gone = Loaded(**{**vars(loaded), "files": (path.with_name("gone.safetensors"),)})
    made = capture_environment(gone, recipe, Arm.NATIVE)
    assert isinstance(made.model["weights.gone.safetensors"], Unknown)
    assert "No such file" in made.context["unknown.model.weights.gone.safetensors"]
    assert equalities(made, made)[Section.MODEL] is Equality.UNDETERMINED
