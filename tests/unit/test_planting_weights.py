"""Planted weights: each edit changes what it says, by as much as it says, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from driftpin.errors import ModelError
from runner.engines.perturbation import units
from runner.planting import WEIGHTS, Options, main, plant
from runner.planting_weights import disturbed

BLOCK = "model.layers.1."
DOWN, QUERY = f"{BLOCK}mlp.down_proj.weight", f"{BLOCK}self_attn.q_proj.weight"
ROUTER = f"{BLOCK}block_sparse_moe.gate.weight"


def tensors(dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    made: dict[str, torch.Tensor] = {"model.embed_tokens.weight": torch.linspace(0.5, 2.0, 32).reshape(8, 4)}
    for block in range(3):
        at = f"model.layers.{block}."
        made |= {
            f"{at}self_attn.q_proj.weight": torch.arange(1.0, 33.0).reshape(8, 4) / 8 + block,
            f"{at}self_attn.o_proj.weight": torch.full((4, 8), 0.25 + block),
            f"{at}mlp.down_proj.weight": torch.linspace(-1.0, 1.5, 24).reshape(4, 6) + block,
            f"{at}block_sparse_moe.gate.weight": torch.linspace(0.25, 1.0, 8).reshape(2, 4) + block,
        }
    return {name: tensor.to(dtype) for name, tensor in made.items()}


def folder(path: Path, dtype: torch.dtype = torch.float32) -> Path:
    path.mkdir()
    save_file(tensors(dtype), path / WEIGHTS)
    (path / "config.json").write_text("{}", "utf-8")
    return path


def planted(tmp_path: Path, change: str, dtype: torch.dtype = torch.float32, **options: Any) -> tuple[int, Any]:
    count = plant(folder(tmp_path / "source", dtype), tmp_path / "target", change, Options(**options))
    return count, load_file(tmp_path / "target" / WEIGHTS)


def changed(new: dict[str, torch.Tensor], dtype: torch.dtype = torch.float32) -> set[str]:
    return {name for name, old in tensors(dtype).items() if not torch.equal(old, new[name])}


def test_noise_moves_block_weights_by_no_more_than_its_size_and_spares_the_embeddings(tmp_path: Path) -> None:
    count, new = planted(tmp_path, "noise", value=-6)
    old = tensors()
    for name, tensor in new.items():
        size = 2.0**-6 * 1.001 if ".layers." in name else 0.0
        assert bool(((tensor - old[name]).abs() <= size * old[name].abs()).all())
    assert count > 200
    assert "model.embed_tokens.weight" not in changed(new)


def test_noise_that_the_format_cannot_hold_changes_no_number(tmp_path: Path) -> None:
    assert planted(tmp_path, "noise", torch.bfloat16, value=-24)[0] == 0


def test_noise_comes_from_the_published_formula() -> None:
    moved = disturbed(torch.full((2, 2), 3.0, dtype=torch.float64), 0.5, 9)
    assert moved.reshape(-1).tolist() == [3.0 * (1.0 + 0.5 * u) for u in units(4, 9)]


@pytest.mark.parametrize(
    ("dtype", "bit", "expected"),
    [
        (torch.float32, 0, 3.0 + 2.0**-22),
        (torch.float32, 22, 2.0),  # 3.0 is 1.5 x 2: its highest mantissa bit is set
        (torch.float32, 31, -3.0),
        (torch.bfloat16, 6, 2.0),
        (torch.bfloat16, 7, 6.0),  # the lowest bit of its exponent is not
        (torch.bfloat16, 15, -3.0),
    ],
)
def test_a_flipped_bit_changes_one_element_as_the_format_says(
    tmp_path: Path, dtype: torch.dtype, bit: int, expected: float
) -> None:
    count, new = planted(tmp_path, "flip", dtype, tensor=QUERY, bit=bit, place=15)
    assert float(tensors(dtype)[QUERY].reshape(-1)[15]) == 3.0
    assert (count, changed(new, dtype), float(new[QUERY].reshape(-1)[15])) == (1, {QUERY}, expected)


def test_one_weight_is_not_a_number(tmp_path: Path) -> None:
    count, new = planted(tmp_path, "nan", tensor=DOWN, place=7)
    assert count == 1
    assert torch.isnan(new[DOWN]).nonzero().tolist() == [[1, 1]]


def test_an_identity_block_adds_nothing(tmp_path: Path) -> None:
    new = planted(tmp_path, "identity", block=1)[1]
    assert changed(new) == {f"{BLOCK}self_attn.o_proj.weight", DOWN}
    assert not new[DOWN].any()


def test_half_of_the_neurons_are_silent(tmp_path: Path) -> None:
    new = planted(tmp_path, "half_mlp", block=1)[1]
    assert changed(new) == {DOWN}
    assert torch.equal(new[DOWN][:, :3], tensors()[DOWN][:, :3])
    assert not new[DOWN][:, 3:].any()


@pytest.mark.parametrize("bits", [4, 8])
def test_rounded_weights_lie_on_so_many_levels_per_row_and_no_farther_than_half_a_step(
    tmp_path: Path, bits: int
) -> None:
    new = planted(tmp_path, "round", bits=bits)[1]
    old = tensors()
    assert "model.embed_tokens.weight" not in changed(new)
    assert ROUTER not in changed(new)
    for row, before in zip(new[DOWN], old[DOWN], strict=True):
        step = float(before.abs().max()) / (2 ** (bits - 1) - 1)
        assert float((row - before).abs().max()) <= step / 2 * 1.001
        assert all(abs(level - round(level)) < 1e-3 for level in (row / step).tolist())


def test_a_router_takes_one_expert_for_the_other(tmp_path: Path) -> None:
    new = planted(tmp_path, "experts_swapped", block=1)[1]
    assert changed(new) == {ROUTER}
    assert torch.equal(new[ROUTER], tensors()[ROUTER].flip(0))


def test_a_perturbed_router_is_the_only_change(tmp_path: Path) -> None:
    count, new = planted(tmp_path, "router", block=1, value=-4)
    assert changed(new) == {ROUTER}
    assert 0 < count <= 8


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ("damage", {"tensor": "no.such"}, "no tensor 'no.such'"),
        ("router", {"block": 7}, "Block 7 has no tensor"),
    ],
)
def test_what_is_not_there_cannot_be_planted(
    tmp_path: Path, change: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence):
        planted(tmp_path, change, **options)


def test_the_source_is_left_alone_and_other_files_are_linked(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    before = (source / WEIGHTS).read_bytes()
    assert main([str(source), str(tmp_path / "target"), "damage", "--tensor", DOWN]) == 0
    assert (source / WEIGHTS).read_bytes() == before
    assert not load_file(tmp_path / "target" / WEIGHTS)[DOWN][0].any()
    assert (tmp_path / "target" / "config.json").stat().st_ino == (source / "config.json").stat().st_ino


def test_the_command_line_answers_an_error_with_its_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder(tmp_path / "source")
    assert main([str(source), str(tmp_path / "target"), "penalty"]) == 2
    assert "has no generation_config.json" in capsys.readouterr().err
