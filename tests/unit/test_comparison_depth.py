"""Where two layer recordings part: the earliest position first, then the earliest block at that position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driftpin.comparison.depth import depth
from driftpin.comparison.facts import Depth
from driftpin.trace.health import first_nonfinite_block
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


def test_what_is_not_finite_enters_at_the_earliest_block_for_masked_attention_carries_it_back() -> None:
    """Zero times NaN is NaN: block c shows it from the first position on, block b only where the fault acts."""
    nonfinite = np.zeros((3, 4), np.int32)
    nonfinite[1, 2:], nonfinite[2, :] = 8, 8
    cells = ((1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3))
    place = found(layers(), replace(layers(*cells), nonfinite=nonfinite))
    assert (place.block, place.position) == ("b", 2 + FIRST)
    finite = found(layers(), replace(layers((0, 3), *cells), nonfinite=nonfinite))  # an overflow begins as a number
    assert (finite.block, finite.position) == ("a", 3 + FIRST)
    seen = replace(layers(*cells), nonfinite=nonfinite)
    assert found(seen, replace(layers((2, 0)), nonfinite=nonfinite)).block == "b"  # it was there before as well
    assert first_nonfinite_block(seen) == ("b", 2 + FIRST)


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dtype": "bfloat16"}, "the hidden states were float32 of width 8 before and are bfloat16 of width 8 now"),
        ({"hidden": 9}, "the hidden states were float32 of width 8 before and are float32 of width 9 now"),
        ({"first_position": 6}, "the recordings begin at different positions: 5 before, 6 now"),
        ({"blocks": ("x", "y")}, "the two models have different blocks: 3, a first, before, 2, x first, now"),
    ],
)
def test_recordings_of_different_models_have_no_place_but_a_reason(change: dict[str, object], said: str) -> None:
    place, reason = depth(layers(), replace(layers(), **change))  # type: ignore[arg-type]
    assert (place, reason) == (None, said)


def without(row: int, made: Layers) -> Layers:
    """The same with one block removed: the later ones move up into its path."""
    kept = {
        n: np.delete(getattr(made, n), row, 0) for n in ("cells", "rms", "absmax", "nonfinite", "prefill", "sketch")
    }
    return replace(made, blocks=BLOCKS[:-1], **kept)  # type: ignore[arg-type]


@pytest.mark.parametrize(("removed", "block", "index"), [(0, "a", 0), (1, "b", 1), (2, None, None)])
def test_a_removed_block_shows_at_its_own_path(removed: int, block: str | None, index: int | None) -> None:
    place = found(layers(), without(removed, layers()))
    assert (place.block, place.index, place.blocks) == (block, index, 3)
    assert place.note == "the two models have different blocks: 3 before, 2 now"


def test_a_block_of_another_path_is_named() -> None:
    place = found(layers(), replace(layers((1, 0)), blocks=("a", "b", "x")))
    assert (place.block, place.note) == ("b", "the two models have different blocks: c is gone, x is new")


def test_renamed_modules_are_brought_together_by_their_order() -> None:
    place = found(layers(), replace(layers((2, 1)), blocks=("model.a", "model.b", "model.c")))
    assert (place.block, place.index) == ("c", 2)
    assert place.note == "the blocks are named otherwise now: a was, model.a is the first"
