"""Localisation on real SmolLM2 in bfloat16 across another attention: the damaged block, and none where none is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from placing import SEEDS, Made, compared, run, suite_of
from replaying import kept_process_state

from driftpin.environment.environment import Equality
from driftpin.trace.probe import Arm
from driftpin.verdict.place import Place, localise
from runner.demo_weights import ensure_smollm2

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

SUITE = suite_of("Name the capital of France.", "List three primary colours.", "2, 4, 8, 16,", tokens=8)
EAGER = {"attention": "eager"}


@pytest.fixture(autouse=True, scope="module")
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


@pytest.fixture(scope="module")
def folder() -> Path:
    return ensure_smollm2("bfloat16")


@pytest.fixture(scope="module")
def native(folder: Path) -> Made:
    return run(folder, SUITE, seeds=SEEDS)


@pytest.fixture(scope="module")
def reference(folder: Path, native: Made) -> Made:
    return run(folder, SUITE, arm=Arm.REFERENCE, on=native, seeds=SEEDS)


def zeroed(model: Any) -> None:
    """Damage that stands out of bfloat16's own rounding."""
    weight = model.get_parameter("model.layers.14.mlp.down_proj.weight").data
    weight[: len(weight) // 4] = 0


def scaled(model: Any) -> None:
    """Damage that bfloat16's rounding hides: 1.5 times the yardstick at most."""
    model.get_parameter("model.layers.20.self_attn.o_proj.weight").data.mul_(1.1)


def placed(folder: Path, native: Made, reference: Made, touch: Callable[[Any], None] | None) -> tuple[Place, Place]:
    """What the native arm says alone, and both."""
    moved = compared(native, run(folder, SUITE, on=native, touch=touch, **EAGER))
    calm = compared(reference, run(folder, SUITE, arm=Arm.REFERENCE, on=native, touch=touch, **EAGER))
    stack, floors = Equality.DIFFERENT, native.floors()
    alone = localise(moved, stack, floors)
    both = localise(moved, stack, floors, reference=calm, reference_floors=reference.floors())
    assert alone is not None
    assert both is not None
    return alone, both


def test_another_attention_accuses_no_block_in_either_arm(folder: Path, native: Made, reference: Made) -> None:
    alone, both = placed(folder, native, reference, None)
    assert (alone.found, both.found) == (False, False)
    assert "rounding throughout" in both.sentence


def test_damage_that_stands_out_is_placed_by_either_arm(folder: Path, native: Made, reference: Made) -> None:
    alone, both = placed(folder, native, reference, zeroed)
    assert (alone.block, alone.arm) == ("model.layers.14", "native")
    assert (both.block, both.arm) == ("model.layers.14", "reference")


def test_damage_within_native_rounding_is_placed_by_the_reference(folder: Path, native: Made, reference: Made) -> None:
    alone, both = placed(folder, native, reference, scaled)
    assert not alone.found
    assert (both.block, both.index, both.arm) == ("model.layers.20", 20, "reference")
