"""Loading a model: what is accepted, what is refused, and with which sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from driftpin.errors import CannotMeasureError, ModelError
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm
from runner.loading import load_model


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.BPE(vocab={chr(33 + i): i for i in range(64)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return folder


@pytest.fixture
def tiny(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "model")


def recipe(path: Path | str, **changes: object) -> Recipe:
    return Recipe(engine="transformers", model="tiny", path=str(path), **changes)  # type: ignore[arg-type]


def change_weights(folder: Path, change) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_model_runs_in_the_dtype_that_was_asked_for(tiny: Path, dtype: str) -> None:
    loaded = load_model(recipe(tiny, dtype=dtype), Arm.NATIVE)
    assert {p.dtype for p in loaded.model.parameters()} == {getattr(torch, dtype)}
    assert not loaded.model.training
    assert not any(p.requires_grad for p in loaded.model.parameters())
    assert loaded.model.config._attn_implementation == "sdpa"
    assert [f.name for f in loaded.files] == ["model.safetensors"]


def test_the_reference_arm_is_float32_whatever_the_recipe_says(tiny: Path) -> None:
    loaded = load_model(recipe(tiny, dtype="bfloat16", attention="eager"), Arm.REFERENCE)
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert loaded.model.config._attn_implementation == "eager"


def test_tied_weights_are_not_missing(tiny: Path) -> None:
    assert "lm_head.weight" not in load_file(tiny / "model.safetensors")
    loaded = load_model(recipe(tiny), Arm.NATIVE)
    assert loaded.missing_keys == loaded.unexpected_keys == ()
    assert torch.equal(loaded.model.lm_head.weight, loaded.model.model.embed_tokens.weight)


def test_missing_weights_are_refused_by_name(tiny: Path) -> None:
    change_weights(tiny, lambda weights: weights.pop("model.layers.1.mlp.up_proj.weight"))
    with pytest.raises(ModelError, match=r"lack model\.layers\.1\.mlp\.up_proj\.weight\..*random numbers"):
        load_model(recipe(tiny), Arm.NATIVE)


def test_unexpected_weights_are_a_fact(tiny: Path) -> None:
    change_weights(tiny, lambda weights: weights.update({"model.extra.weight": torch.zeros(2)}))
    assert load_model(recipe(tiny), Arm.NATIVE).unexpected_keys == ("model.extra.weight",)


def test_weights_of_another_size_are_refused(tiny: Path) -> None:
    change_weights(tiny, lambda weights: weights.update({"model.norm.weight": torch.zeros(17)}))
    with pytest.raises(ModelError):
        load_model(recipe(tiny), Arm.NATIVE)


def test_loading_says_nothing_on_the_terminal(tiny: Path, capfd: pytest.CaptureFixture[str]) -> None:
    change_weights(tiny, lambda weights: weights.update({"model.extra.weight": torch.zeros(2)}))
    loaded = load_model(recipe(tiny), Arm.NATIVE)
    assert capfd.readouterr() == ("", "")
    assert any("model.extra.weight" in text for text in loaded.warnings)


def cut(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-10])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def shards(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


FAULTS = {
    "truncated": (cut, "cannot be read"),
    "garbage": (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 64), "cannot be read"),
    "pickle": (pickled, "never unpickles"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "holds no model.safetensors"),
    "lost shard": (shards, "lacks model-1.safetensors"),
    "no config": (lambda f: (f / "config.json").unlink(), "holds no config.json"),
    "bad config": (lambda f: (f / "config.json").write_text('{"a":'), "not valid JSON"),
    "list config": (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
    "unknown kind": (lambda f: (f / "config.json").write_text('{"model_type": "nothing"}'), "cannot be loaded"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer .* cannot be loaded"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_folder_gives_a_sentence_with_a_remedy(tiny: Path, fault: str) -> None:
    spoil, sentence = FAULTS[fault]
    spoil(tiny)
    with pytest.raises(ModelError, match=sentence) as caught:
        load_model(recipe(tiny), Arm.NATIVE)
    assert caught.value.remedy


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere does not exist"):
        load_model(recipe(tmp_path / "nowhere"), Arm.NATIVE)
    with pytest.raises(ModelError, match="no path"):
        load_model(recipe(""), Arm.NATIVE)


def test_a_lacking_device_is_not_a_fault_of_the_model(tiny: Path) -> None:
    with pytest.raises(CannotMeasureError, match=r"no cuda:63 here: torch .* sees cpu"):
        load_model(recipe(tiny, device="cuda:63"), Arm.NATIVE)
    with pytest.raises(ModelError, match="'abacus' is no device"):
        load_model(recipe(tiny, device="abacus"), Arm.NATIVE)


def test_an_unknown_dtype_or_attention_is_refused(tiny: Path) -> None:
    with pytest.raises(ModelError, match=r"float32, bfloat16, float16"):
        load_model(recipe(tiny, dtype="int3"), Arm.NATIVE)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(recipe(tiny, attention="imaginary"), Arm.NATIVE)
