"""Finding the decoder's blocks and their routers, in the layouts that transformers has and had."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from runner.recording.blocks import find_blocks, find_routers


class Block(nn.Module):
    def __init__(self, mlp: nn.Module | None = None) -> None:
        super().__init__()
        self.mlp = mlp or nn.Identity()


class VisionBlock(nn.Module):
    pass


def tower(count: int, kind: type[nn.Module] = Block, declared: list[str] | None = None) -> nn.Module:
    model = nn.Module()
    model.layers = nn.ModuleList(kind() for _ in range(count))
    model._no_split_modules = declared  # type: ignore[assignment]
    return model


def test_blocks_are_keyed_by_module_path() -> None:
    top = nn.Module()
    top.model = tower(3, declared=["Block"])
    top.spare = nn.ModuleList([nn.Linear(1, 1) for _ in range(9)])
    found = find_blocks(top)
    assert list(found.modules) == ["model.layers.0", "model.layers.1", "model.layers.2"]
    assert found.modules["model.layers.1"] is top.model.layers[1]
    assert found.absent is None


def test_the_text_decoder_goes_before_a_longer_vision_tower() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vision = tower(8, VisionBlock, ["VisionBlock"])
            self.text = tower(2, Block, ["Block"])

        def get_decoder(self) -> nn.Module:
            return self.text

    assert list(find_blocks(Both()).modules) == ["text.layers.0", "text.layers.1"]


def test_without_declared_blocks_there_is_a_reason() -> None:
    found = find_blocks(tower(3))
    assert found.modules == {}
    assert found.absent == "Module declares no unsplittable class, and no module list is made of it"
    assert find_blocks(tower(3, declared=["Other"])).absent is not None
    assert find_routers(found) == ()


def routed(mlp: nn.Module) -> Any:
    block = Block(mlp)
    model = nn.Module()
    model.layers = nn.ModuleList([block, Block()])
    model._no_split_modules = ["Block"]  # type: ignore[assignment]
    return find_routers(find_blocks(model))


def test_the_older_layout_reads_router_logits() -> None:
    mlp = nn.Module()
    mlp.experts, mlp.top_k = nn.ModuleList(nn.Identity() for _ in range(4)), 2  # type: ignore[assignment]
    (router,) = routed(mlp)
    logits = torch.tensor([[0.1, 3.0, -1.0, 2.0], [5.0, 0.0, 6.0, 1.0]])
    assert router.block == "layers.0.mlp"
    assert router.listen is mlp
    assert router.pick((), (torch.zeros(1, 2, 8), logits)).tolist() == [[1, 3], [2, 0]]
    assert router.pick((), torch.zeros(1, 2, 8)) is None
    assert router.pick((), (torch.zeros(1, 2, 8), None)) is None


def test_the_newer_layout_reads_the_ids_that_the_experts_are_given() -> None:
    mlp = nn.Module()
    mlp.experts = nn.Identity()
    (router,) = routed(mlp)
    ids = torch.tensor([[1, 3], [0, 2]])
    assert router.listen is mlp.experts
    assert router.pick((torch.zeros(2, 8), ids, torch.ones(2, 2)), None) is ids
    assert router.pick((torch.zeros(2, 8), torch.ones(2, 2)), None) is None  # weights, not ids
    assert router.pick((torch.zeros(2, 8),), None) is None
