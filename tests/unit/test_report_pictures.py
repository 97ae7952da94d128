"""Layer profile, bullet and sign strip: places follow from numbers."""

from __future__ import annotations

import math

import pytest

from driftpin.comparison.distance import Distance
from driftpin.comparison.facts import TraceComparison
from driftpin.report.bullet import bullet
from driftpin.report.canaries import changed_canaries, counts, identical_canaries
from driftpin.report.figure import WIDE, axis, line
from driftpin.report.profile import layer_profile
from driftpin.report.scale import Scale
from driftpin.report.strip import MOST, TALL, strip
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.floors import Floors

BLOCKS = ("model.layers.0", "model.layers.1", "model.layers.10")


def scored(canary: str, *sizes: float) -> TraceComparison:
    return TraceComparison(
        key=TraceKey(canary=canary, probe=Probe.SCORE),
        identical=False,
        tokens_equal=True,
        deviation=tuple(zip(BLOCKS, sizes, strict=True)),
    )


def floors(**blocks: float) -> Floors:
    names = {f"model.layers.{name[1:]}": size for name, size in blocks.items()}
    return Floors(pair=0.1, logprob=0.01, by_canary={}, blocks=names, samples=1, seeds=4)


def test_the_profile_shows_medians_with_their_range_against_the_yardstick() -> None:
    changed = [scored("a", 0.0, 0.1, 0.4), scored("b", 0.0, 0.2, 0.5), scored("c", 0.0, 0.9, 0.6)]
    found = layer_profile(changed, floors(b0=0.01, b1=0.02, b10=0.05), "model.layers.1")
    assert found is not None
    [panel] = found.panels
    assert found.table.rows == (
        ("model.layers.0", "0", "0", "0", "0.01", "0"),
        ("model.layers.1", "0.2", "0.1", "0.9", "0.02", "10"),
        ("model.layers.10", "0.5", "0.4", "0.6", "0.05", "10"),
    )
    assert [label.text for label in found.axis] == ["0", "1", "10"]
    assert found.axis_title == "block: model.layers.N"
    assert [dot.css for dot in panel.dots] == ["", "named", ""]
    assert found.mark == panel.dots[1].x
    assert [one.css for one in panel.lines] == ["yardstick", "limit"]
    assert panel.spans[1].top < panel.dots[1].y < panel.spans[1].bottom
    assert panel.dots[0].y == panel.height  # zero


def test_a_profile_without_a_yardstick_has_no_lines() -> None:
    found = layer_profile([scored("a", 0.1, 0.2, 0.3)], None, None)
    assert found is not None
    assert found.panels[0].lines == ()
    assert found.mark is None
    assert {row[4] for row in found.table.rows} == {""}


def test_a_block_that_moved_infinitely_is_marked() -> None:
    found = layer_profile([scored("a", 0.1, math.inf, 0.3)], None, None)
    assert found is not None
    assert len(found.panels[0].lost) == 1
    assert len(found.panels[0].dots) == 2


def test_only_blocks_of_every_canary_are_drawn_and_none_without_sketches() -> None:
    other = TraceComparison(
        key=TraceKey(canary="z", probe=Probe.SCORE),
        identical=False,
        tokens_equal=True,
        deviation=(("model.layers.1", 0.5),),
    )
    found = layer_profile([scored("a", 0.1, 0.2, 0.3), other], None, None)
    assert found is not None
    assert [row[0] for row in found.table.rows] == ["model.layers.1"]
    assert layer_profile([], None, None) is None


def test_a_bullet_keeps_the_order_of_its_numbers() -> None:
    found = bullet("x", (("yardstick", "y", 0.02), ("limit", "l", 0.04), ("value", "v", 0.3)))
    assert found is not None
    xs = [level.x for level in found.levels]
    assert xs == sorted(xs)
    assert found.within == found.levels[1].x


@pytest.mark.parametrize("value", [None, "NaN", math.nan, math.inf])
def test_a_bullet_without_its_value_is_none(value: object) -> None:
    assert bullet("x", (("yardstick", "y", 0.02), ("value", "v", value))) is None


def distance(number: int, ratio: float) -> Distance:
    return Distance(key=TraceKey(canary=f"c{number}", probe=Probe.SCORE), positions=1, baseline=1.0, candidate=ratio)


def test_the_strip_puts_farther_canaries_right_of_the_middle() -> None:
    found = strip([distance(n, ratio) for n, ratio in enumerate((0.5, 1.0, 1.4, 2.0))], Probe.SCORE)
    assert found is not None
    assert [dot.css for dot in found.dots] == ["closer", "farther", "farther"]  # equal ones say nothing
    assert found.dots[0].x < 50 < found.dots[1].x < found.dots[2].x
    assert strip([distance(0, 2.0)], Probe.DECODE) is None


def test_a_thousand_canaries_and_an_infinite_ratio_stay_in_the_picture() -> None:
    found = strip([distance(n, 1.0 + (n + 1) / 1000) for n in range(1000)] + [distance(1000, math.inf)], Probe.SCORE)
    assert found is not None
    assert len(found.dots) <= MOST
    assert len(found.dots) + found.left_out == 1001
    assert all(0 <= dot.x <= 100 and 0 <= dot.y <= TALL for dot in found.dots)


def test_lines_break_where_there_is_no_number() -> None:
    drawn = line("a", [1.0, None, 1.0, 1.0], Scale(low=-1, high=0), 100)
    assert drawn.path.count("M") == 2
    assert f"{WIDE * 0.875:.1f} 0" in drawn.path


def test_an_axis_has_few_labels_and_keeps_the_first_inside() -> None:
    labels = axis([str(n) for n in range(320)])
    assert len(labels) <= 8
    assert labels[0].anchor == "start"


def body() -> dict[str, object]:
    def told(word: str) -> dict[str, object]:
        return {"outcome": word, "all": [word], "findings": [{"outcome": word, "execution": None, "why": word}]}

    order = {"a/b": "numeric", "b": "identical", "c": "flip", "d": "identical", "e": "numeric"}
    return {
        "outcomes": {name: told(word) for name, word in order.items()},
        "movement": [{"execution": "a/b/score/alone/0"}, {"execution": "c/decode/alone/0"}],
    }


def test_the_gravest_outcome_comes_first_then_suite_order() -> None:
    assert [line_.name for line_ in changed_canaries(body())] == ["c", "a/b", "e"]


def test_a_wanted_canary_comes_first() -> None:
    assert [line_.name for line_ in changed_canaries(body(), ("e",))] == ["e", "c", "a/b"]


def test_movements_belong_to_their_canary_whatever_it_is_called() -> None:
    found = {line_.name: len(line_.movements) for line_ in changed_canaries(body())}
    assert found == {"c": 1, "a/b": 1, "e": 0}


def test_identical_ones_are_only_counted() -> None:
    assert identical_canaries(body()) == ("b", "d")
    assert counts(body()) == (("flip", 1, 20.0), ("numeric", 2, 40.0), ("identical", 2, 40.0))
