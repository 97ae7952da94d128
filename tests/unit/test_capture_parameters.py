"""Digests of parameters in memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from runner.capture.parameters import computed_facts, group_of, parameter_facts, tensor_sum

MASK = 2**64 - 1


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3, bias=False, dtype=torch.bfloat16) for _ in range(2)])
        self.register_buffer("scales", torch.tensor([1.0, 0.5]))
        self.register_buffer("frequencies", torch.tensor([1.0, 0.5]), persistent=False)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight  # tied


def splitmix(index: int) -> int:
    z = (index + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return (z ^ z >> 31) | 1


def weighted(numbers: list[int]) -> int:
    return sum(splitmix(i) * (n + 1) for i, n in enumerate(numbers)) & MASK


def test_a_tensors_sum_agrees_with_plain_integers() -> None:
    rows = torch.tensor([[1.0, -0.0], [0.5, 2.0]])
    bits = [[0x3F800000, 0x80000000], [0x3F000000, 0x40000000]]
    assert tensor_sum(rows) == weighted([weighted(row) for row in bits])
    assert tensor_sum(rows.to(torch.bfloat16)) == tensor_sum(rows)  # all exact in bfloat16


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(10_000, dtype=torch.int64),
        torch.arange(7, dtype=torch.float64),
        torch.arange(200, dtype=torch.uint8),
        torch.tensor([True, False]),
        torch.tensor(3.0),
    ],
    ids=lambda t: str(t.dtype),
)
def test_every_kind_of_tensor_has_a_sum_that_one_element_changes(tensor: torch.Tensor) -> None:
    other = tensor.clone()
    other.view(-1)[-1] = 0
    assert tensor_sum(tensor) == tensor_sum(tensor.clone())
    if not torch.equal(tensor, other):
        assert tensor_sum(tensor) != tensor_sum(other)
    assert tensor_sum(tensor[:0] if tensor.dim() else tensor.reshape(1)[:0]) == 0


def test_one_flipped_bit_is_told_with_its_block() -> None:
    model = Tiny()
    before = parameter_facts(model)
    with torch.no_grad():
        model.layers[1].weight.view(torch.int16)[2, 1] ^= 1
    after = parameter_facts(model)
    assert {name for name in before if before[name] != after[name]} == {"parameters.layers.1", "parameters.total"}


def test_a_changed_buffer_of_the_file_is_told_too() -> None:
    model = Tiny()
    before = parameter_facts(model)
    model.scales[1] = 0.25
    after = parameter_facts(model)
    assert {name for name in before if before[name] != after[name]} == {"parameters.scales", "parameters.total"}


def test_what_the_library_computed_stands_apart() -> None:
    """Another library version computes other buffers for the same files: that is not another model."""
    model = Tiny()
    files, computed = parameter_facts(model), computed_facts(model)
    model.frequencies[1] = 0.25
    model.register_buffer("more", torch.ones(2), persistent=False)
    assert parameter_facts(model) == files
    assert set(computed) == {"computed.frequencies", "parameters.layout"}
    assert set(computed_facts(model)) == {*computed, "computed.more"}
    assert computed_facts(model)["computed.frequencies"] != computed["computed.frequencies"]


def test_swapped_rows_and_swapped_blocks_are_told() -> None:
    model = Tiny()
    before = parameter_facts(model)["parameters.total"]
    with torch.no_grad():
        model.embed.weight.copy_(model.embed.weight[[1, 0, 2, 3, 4]].clone())
    swapped = parameter_facts(model)["parameters.total"]
    model.layers[0], model.layers[1] = model.layers[1], model.layers[0]
    assert len({before, swapped, parameter_facts(model)["parameters.total"]}) == 3


def test_the_histogram_counts_tied_parameters_once() -> None:
    assert parameter_facts(Tiny())["parameters.dtypes"] == {"bfloat16": 18, "float32": 15}


def test_groups() -> None:
    assert group_of("model.layers.3.mlp.up_proj.weight") == "model.layers.3"
    assert group_of("model.norm.weight") == "model.norm"
    assert group_of("frequencies") == "frequencies"


def test_the_layout_is_of_names_and_shapes_and_not_of_numbers() -> None:
    model, other = Tiny(), Tiny()
    with torch.no_grad():
        model.layers[0].weight += 1
    assert computed_facts(model)["parameters.layout"] == computed_facts(other)["parameters.layout"]
    other.layers = nn.ModuleList([nn.Linear(3, 6, bias=False)])
    assert computed_facts(model)["parameters.layout"] != computed_facts(other)["parameters.layout"]
