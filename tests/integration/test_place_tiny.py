"""Faults planted in tiny models are placed in their own block: by bits, across another attention, by the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from placing import SEEDS, Made, compared, run, suite_of
from replaying import kept_process_state
from transformers.cache_utils import DynamicLayer

from driftpin.environment.environment import Equality
from driftpin.trace.probe import Arm
from driftpin.verdict.floors import Floors
from driftpin.verdict.place import DECODE_ONLY, How, Place, localise

SUITE = suite_of("héllo", "What is 17 times 23?", "Name the capital of France, please.", "2, 4, 8, 16,", tokens=12)
EAGER = {"attention": "eager"}
HEAD = 16  # width of an attention head

Touch = Callable[[Any], None]


@pytest.fixture(autouse=True, scope="module")
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


@dataclass(frozen=True, kw_only=True, eq=False)
class Baseline:
    """Both arms of an undamaged model with their yardsticks."""

    folder: Path
    native: Made
    reference: Made
    floors: Floors
    reference_floors: Floors

    @classmethod
    def of(cls, folder: Path) -> Baseline:
        native = run(folder, SUITE, seeds=SEEDS)
        reference = run(folder, SUITE, arm=Arm.REFERENCE, on=native, seeds=SEEDS)
        return cls(
            folder=folder,
            native=native,
            reference=reference,
            floors=native.floors(),
            reference_floors=reference.floors(),
        )

    def placed(self, touch: Touch | None, stack: Equality, *, arms: int = 2, **recipe: Any) -> Place:
        """The place that a candidate with `touch` gets; with one arm the reference did not run."""
        native = compared(self.native, run(self.folder, SUITE, on=self.native, touch=touch, **recipe))
        reference = None
        if arms == 2:
            made = run(self.folder, SUITE, arm=Arm.REFERENCE, on=self.native, touch=touch, **recipe)
            reference = compared(self.reference, made)
        found = localise(native, stack, self.floors, reference=reference, reference_floors=self.reference_floors)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def llama(llama_folder: Path) -> Baseline:
    return Baseline.of(llama_folder)


@pytest.fixture(scope="module")
def mixture(mixture_folder: Path) -> Baseline:
    return Baseline.of(mixture_folder)


def damaged(name: str) -> Touch:
    """A quarter of a tensor's rows is zero."""

    def touch(model: Any) -> None:
        weight = model.get_parameter(name).data
        weight[: len(weight) // 4] = 0

    return touch


def permuted(block: int) -> Touch:
    """Query rows in the layout of the other rotary convention: each head's halves become interleaved."""

    def touch(model: Any) -> None:
        weight = model.model.layers[block].self_attn.q_proj.weight.data
        heads = weight.view(-1, 2, HEAD // 2, weight.shape[1])
        weight.copy_(heads.transpose(1, 2).reshape(weight.shape).clone())

    return touch


def removed(block: int) -> Touch:
    def touch(model: Any) -> None:
        del model.model.layers[block]
        model.config.num_hidden_layers = len(model.model.layers)
        for index, layer in enumerate(model.model.layers):
            layer.self_attn.layer_idx = index

    return touch


FAULTS = [
    pytest.param(damaged("model.layers.0.self_attn.v_proj.weight"), 0, id="damage in block 0"),
    pytest.param(damaged("model.layers.2.mlp.down_proj.weight"), 2, id="damage in block 2"),
    pytest.param(damaged("model.layers.3.self_attn.o_proj.weight"), 3, id="damage in block 3"),
    pytest.param(permuted(1), 1, id="permuted queries in block 1"),
]


@pytest.mark.parametrize(("touch", "block"), FAULTS)
def test_on_the_same_stack_bits_name_the_block(llama: Baseline, touch: Touch, block: int) -> None:
    place = llama.placed(touch, Equality.SAME, arms=1)
    assert (place.block, place.index, place.how) == (f"model.layers.{block}", block, How.BITS)
    assert place.agreeing == place.asked == len(SUITE.canaries)


@pytest.mark.parametrize(("touch", "block"), FAULTS)
def test_across_another_attention_the_reference_arm_names_the_block(llama: Baseline, touch: Touch, block: int) -> None:
    place = llama.placed(touch, Equality.DIFFERENT, **EAGER)
    assert (place.block, place.how, place.arm) == (f"model.layers.{block}", How.DEVIATION, "reference")


def test_another_attention_alone_accuses_no_block(llama: Baseline) -> None:
    place = llama.placed(None, Equality.DIFFERENT, **EAGER)
    assert (place.found, place.block) == (False, None)
    assert "rounding throughout" in place.sentence


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("recipe", [{}, EAGER], ids=["same attention", "another attention"])
def test_a_removed_block_is_named_by_its_path(llama: Baseline, block: int, recipe: dict[str, str]) -> None:
    place = llama.placed(removed(block), Equality.DIFFERENT if recipe else Equality.SAME, **recipe)
    assert (place.block, place.index) == (f"model.layers.{block}", block)
    assert "the two models have different blocks: 4 before, 3 now" in place.sentence


def test_a_removed_last_block_is_behind_all_that_both_have(llama: Baseline) -> None:
    place = llama.placed(removed(3), Equality.SAME, arms=1)
    assert place.block is None
    assert (
        "behind the last block that both have (the two models have different blocks: 4 before, 3 now" in place.sentence
    )


def test_a_damaged_final_norm_is_behind_the_last_block(llama: Baseline) -> None:
    assert "behind the last block" in llama.placed(damaged("model.norm.weight"), Equality.SAME, arms=1).sentence
    assert "behind the last block" in llama.placed(damaged("model.norm.weight"), Equality.DIFFERENT, **EAGER).sentence


def perturbed_router(block: int) -> Touch:
    def touch(model: Any) -> None:
        (gate,) = (p for n, p in model.named_parameters() if n.startswith(f"model.layers.{block}.mlp.gate"))
        gate.data.copy_(gate.data.roll(1, 0))  # each expert's score goes to its neighbour

    return touch


def test_a_perturbed_router_is_placed_and_labelled(mixture: Baseline) -> None:
    same = mixture.placed(perturbed_router(2), Equality.SAME, arms=1)
    assert (same.block, same.how, same.label) == ("model.layers.2", How.ROUTER, "router")
    assert "its router model.layers.2.mlp chose other experts" in same.sentence
    other = mixture.placed(perturbed_router(2), Equality.DIFFERENT, **EAGER)
    assert (other.block, other.how, other.label, other.arm) == (
        "model.layers.2",
        How.DEVIATION,
        "router",
        "reference",
    )


def test_a_mixture_under_another_attention_accuses_no_block(mixture: Baseline) -> None:
    place = mixture.placed(None, Equality.DIFFERENT, **EAGER)
    assert not place.found
    assert place.label is None


def test_a_low_precision_cache_shows_in_decode_only(llama: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values rounded to 3 bits of mantissa once they are stored: a prefill never reads them back."""
    update = DynamicLayer.update

    def rounded(self: DynamicLayer, keys: torch.Tensor, values: torch.Tensor, *more: Any, **named: Any) -> Any:
        out = update(self, keys, values, *more, **named)
        self.keys, self.values = (t.to(torch.float8_e4m3fn).to(t.dtype) for t in (self.keys, self.values))
        return out

    monkeypatch.setattr(DynamicLayer, "update", rounded)
    same = llama.placed(None, Equality.SAME, arms=1)
    assert (same.block, same.how) == ("model.layers.0", How.BITS)  # the first block that reads its cache
    assert same.sentence.endswith(DECODE_ONLY)
    assert llama.placed(None, Equality.DIFFERENT, **EAGER).sentence == f"not localisable: {DECODE_ONLY}"
