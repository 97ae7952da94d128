"""Where two layer recordings part: the earliest position first, then the earliest block at that position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driftpin.comparison.depth import depth
from driftpin.comparison.facts import Depth
from driftpin.trace.layers import Layers, quantise

FIRST = 5  # sequence index of the first recorded position
BLOCKS = ("a", "b", "c")
CELLS = np.arange(12, dtype=np.uint32).reshape(3, 4)


def layers(*changed: tuple[int, int], rms: float = 1.0, prefill: tuple[int, ...] = (7, 8, 9)) -> Layers:
    """Three blocks, four positions; `changed` cells (block, position) hold something else."""
    cells = CELLS.copy()
    for cell in changed:
        cells[cell] += 100
    return Layers(
        blocks=BLOCKS,
        dtype="float32",
        hidden=8,
        first_position=FIRST,
        root="00" * 32,
        cells=cells,
        rms=quantise(np.full((3, 4), rms)),
        absmax=np.ones((3, 4), np.uint16),
        nonfinite=np.zeros((3, 4), np.int32),
        prefill=np.array(prefill, np.uint64),
        sketch=np.zeros((3, 0, 8), np.float32),
        sketch_positions=np.zeros(0, np.int32),
        experts=np.zeros((0, 4), np.uint32),
    )


def found(a: Layers, b: Layers, until: int | None = None) -> Depth:
    place, reason = depth(a, b, until)
    assert reason is None
    assert place is not None
    return place


@pytest.mark.parametrize(
    ("changed", "block", "position"),
    [
        ([(1, 2)], "b", 2),
        ([(2, 1), (0, 2)], "c", 1),  # the earlier position wins although its block is deeper
        ([(2, 3), (1, 3)], "b", 3),  # at one position the earlier block
    ],
)
def test_the_first_parting(changed: list[tuple[int, int]], block: str, position: int) -> None:
    place = found(layers(), layers(*changed))
    assert (place.block, place.index, place.position) == (block, BLOCKS.index(block), position + FIRST)
    assert place.blocks == 3


def test_equal_cells_place_the_difference_behind_the_last_block() -> None:
    assert found(layers(), layers()) == Depth(block=None, index=None, blocks=3, position=None, ratio_rms=None)


def test_positions_behind_a_token_divergence_are_not_asked() -> None:
    """Sequence index 6 saw other tokens, so what differs there says nothing."""
    assert found(layers(), layers((0, 1)), until=FIRST + 1).block is None
    assert found(layers(), layers((0, 1)), until=FIRST + 2).block == "a"
    assert found(layers(), layers((0, 0)), until=0).block is None


def test_the_prefill_comes_before_every_step() -> None:
    place = found(layers(), layers((0, 0), prefill=(7, 80, 90)))
    assert (place.block, place.index, place.position) == ("b", 1, None)


def test_the_ratio_of_sizes_is_the_candidates_over_the_baselines() -> None:
    assert found(layers(rms=2.0), layers((0, 0), rms=8.0)).ratio_rms == pytest.approx(4.0)
    assert found(layers(rms=0.0), layers((0, 0), rms=8.0)).ratio_rms is None
    assert found(layers(), layers((0, 0), rms=float("nan"))).ratio_rms is None


def test_a_shorter_recording_is_asked_as_far_as_it_goes() -> None:
    short = layers((1, 1))
    short = replace(short, cells=short.cells[:, :2], rms=short.rms[:, :2])
    assert found(layers(), short).block == "b"


@pytest.mark.parametrize("change", [{"blocks": ("a", "b", "x")}, {"dtype": "bfloat16"}, {"hidden": 9}])
def test_recordings_of_different_models_have_no_place_but_a_reason(change: dict[str, object]) -> None:
    place, reason = depth(layers(), replace(layers(), **change))  # type: ignore[arg-type]
    assert place is None
    assert reason
