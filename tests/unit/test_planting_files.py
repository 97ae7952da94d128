"""Planted layouts and texts: blocks renumbered, bases scaled, templates and tokenizers changed in the right file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from driftpin.errors import ModelError
from runner.planting import WEIGHTS, Options, plant
from runner.planting_folder import read

CONFIG: dict[str, Any] = {
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "layer_types": ["full", "sliding", "chunked"],
    "rope_theta": 10000.0,
    "rope_parameters": {"full": {"rope_theta": 500.0}, "sliding": {"rope_theta": 20.0}},
}


def source(path: Path, **files: Any) -> Path:
    path.mkdir()
    tensors = {f"model.layers.{n}.self_attn.{p}_proj.weight": values(n, p) for n in range(3) for p in "qk"}
    save_file(tensors | {"model.norm.weight": torch.ones(2)}, path / WEIGHTS)
    for name, value in {"config.json": CONFIG, **files}.items():
        (path / name).write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def values(block: int, part: str) -> torch.Tensor:
    rows = 8 if part == "q" else 4  # two heads, one key head, four numbers each
    return torch.arange(float(rows)).reshape(rows, 1) + 100 * block


def test_a_removed_block_leaves_no_gap(tmp_path: Path) -> None:
    plant(source(tmp_path / "source"), tmp_path / "target", "remove", Options(block=1))
    tensors, config = load_file(tmp_path / "target" / WEIGHTS), read(tmp_path / "target", "config.json")
    assert {name.split(".")[2] for name in tensors if ".layers." in name} == {"0", "1"}
    assert torch.equal(tensors["model.layers.1.self_attn.q_proj.weight"], values(2, "q"))
    assert "model.norm.weight" in tensors
    assert (config["num_hidden_layers"], config["layer_types"]) == (2, ["full", "chunked"])


def test_a_block_that_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="3 blocks, none with the number 3"):
        plant(source(tmp_path / "source"), tmp_path / "target", "remove", Options(block=3))


def test_interleaved_queries_keep_every_row_and_every_head(tmp_path: Path) -> None:
    count = plant(source(tmp_path / "source"), tmp_path / "target", "permute", Options())
    tensors = load_file(tmp_path / "target" / WEIGHTS)
    # Per head of four: rows 0 1 2 3 become 0 2 1 3, as pairs are taken apart into halves.
    assert tensors["model.layers.0.self_attn.q_proj.weight"][:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert tensors["model.layers.0.self_attn.k_proj.weight"][:, 0].tolist() == [0, 2, 1, 3]
    assert count == 3 * (4 + 2)


def test_the_rotary_base_is_scaled_wherever_it_is_written(tmp_path: Path) -> None:
    count = plant(source(tmp_path / "source"), tmp_path / "target", "rope", Options(value=0.1))
    config = read(tmp_path / "target", "config.json")
    assert (count, config["rope_theta"]) == (3, pytest.approx(1000.0))
    assert config["rope_parameters"]["sliding"]["rope_theta"] == pytest.approx(2.0)
    assert read(tmp_path / "source", "config.json") == CONFIG


def test_a_model_that_names_no_base_cannot_have_another(tmp_path: Path) -> None:
    made = source(tmp_path / "source", **{"config.json": {"num_hidden_layers": 3}})
    with pytest.raises(ModelError, match="names no rope_theta"):
        plant(made, tmp_path / "target", "rope", Options())


@pytest.mark.parametrize("own_file", [True, False])
def test_a_template_is_changed_where_the_model_keeps_it(tmp_path: Path, own_file: bool) -> None:
    files = {"chat_template.jinja": "T"} if own_file else {"tokenizer_config.json": {"chat_template": "T", "x": 1}}
    plant(source(tmp_path / "source", **files), tmp_path / "target", "template", Options())
    if own_file:
        assert (tmp_path / "target" / "chat_template.jinja").read_text() == "T{{ ' ' }}"
    else:
        assert read(tmp_path / "target", "tokenizer_config.json") == {"chat_template": "T{{ ' ' }}", "x": 1}


def test_a_system_line_stands_before_the_chat(tmp_path: Path) -> None:
    files = {"chat_template.jinja": "T"}
    plant(source(tmp_path / "source", **files), tmp_path / "target", "system", Options(words="Be brief."))
    text = (tmp_path / "target" / "chat_template.jinja").read_text()
    assert text == "{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}T"


@pytest.mark.parametrize("merges", [[["a", "b"], ["ab", "c"]], ["a b", "ab c"]])
def test_one_merge_is_gone_in_either_form_of_the_file(tmp_path: Path, merges: list[Any]) -> None:
    made = source(tmp_path / "source", **{"tokenizer.json": {"model": {"merges": merges}}})
    assert plant(made, tmp_path / "target", "merge", Options(words="a b")) == 1
    assert read(tmp_path / "target", "tokenizer.json")["model"]["merges"] == merges[1:]
    with pytest.raises(ModelError, match="no merge 'x y'"):
        plant(made, tmp_path / "target", "merge", Options(words="x y"))


def test_a_normaliser_and_a_penalty_are_one_entry_each(tmp_path: Path) -> None:
    files = {"tokenizer.json": {"normalizer": None}, "generation_config.json": {"eos_token_id": 2}}
    made = source(tmp_path / "source", **files)
    plant(made, tmp_path / "a", "normalizer", Options())
    plant(made, tmp_path / "b", "penalty", Options(value=1.5))
    assert read(tmp_path / "a", "tokenizer.json") == {"normalizer": {"type": "NFKC"}}
    assert read(tmp_path / "b", "generation_config.json") == {"eos_token_id": 2, "repetition_penalty": 1.5}
