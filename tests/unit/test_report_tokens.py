"""Token diffs and charts of executions small enough to do by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from driftpin.comparison.facts import Divergence, Movement, TraceComparison
from driftpin.report.sequence import WINDOW, sequence_figure
from driftpin.report.strand import Strand, Voice
from driftpin.report.tokens import AFTER, BEFORE, token_diff
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.floors import Floors

FLOORS = Floors(pair=0.5, logprob=0.01, by_canary={"c": 0.02}, blocks={}, samples=9, seeds=4)


def voice(words: str, logprob: Sequence[float] = (), margin: Sequence[float] = ()) -> Voice:
    """One token per letter, whose id is its code."""
    count = len(words)
    return Voice(
        ids=tuple(map(ord, words)),
        pieces=tuple(letter.encode() for letter in words),
        logprob=np.array(logprob or [-1.0] * count),
        margin=np.array(margin or [2.0] * count),
    )


def strand(a: Voice, b: Voice, probe: Probe = Probe.DECODE, text: bool = True) -> Strand:
    common = min(len(a.ids), len(b.ids))
    at = next((i for i in range(common) if a.ids[i] != b.ids[i]), None if len(a.ids) == len(b.ids) else common)
    parted = None if at is None else _divergence(a, b, at)
    moved = Movement(
        positions=common, moved=1, first_moved=0, mean_abs_logprob=0.25, max_abs_logprob=0.5, max_pair=None
    )
    fact = TraceComparison(
        key=TraceKey(canary="c", probe=probe),
        identical=False,
        tokens_equal=parted is None,
        divergence=parted,
        movement=moved,
    )
    return Strand(key=fact.key, fact=fact, baseline=a, candidate=b, text=text)


def _divergence(a: Voice, b: Voice, at: int) -> Divergence:
    ids = [v.ids[at] if at < len(v.ids) else None for v in (a, b)]
    return Divergence(
        position=at,
        baseline_id=ids[0],
        candidate_id=ids[1],
        baseline_margin=0.1,
        candidate_margin=0.2,
        movement=0.3,
        missing=None,
        before="",
        baseline_text="",
        candidate_text="",
        ulp=0.75,
    )


def kinds(chips: Sequence[object]) -> str:
    return " ".join(f"{c.text}:{c.kind}" for c in chips)  # type: ignore[attr-defined]


def test_the_divergence_is_marked_and_what_comes_again_is_told_from_what_does_not() -> None:
    found = token_diff(strand(voice("abcxyz"), voice("abqyzw")))
    assert found is not None
    assert kinds(found.shared) == "a:shared b:shared"
    assert kinds(found.baseline) == "c:parted x:other y:again z:again end of the output:other"
    assert kinds(found.candidate) == "q:parted y:again z:again w:other end of the output:other"
    assert found.baseline[0].position == 2
    assert found.baseline[0].id == ord("c")


def test_an_output_that_stops_parts_at_its_end() -> None:
    found = token_diff(strand(voice("ab"), voice("abc")))
    assert found is not None
    assert kinds(found.baseline) == "end of the output:parted"
    assert found.baseline[0].ended
    assert kinds(found.candidate) == "c:parted end of the output:other"


def test_equal_tokens_have_no_continuations() -> None:
    found = token_diff(strand(voice("abc"), voice("abc")))
    assert found is not None
    assert (len(found.shared), found.baseline, found.candidate) == (3, (), ())


def test_a_long_output_is_cut_on_both_sides_of_the_divergence() -> None:
    found = token_diff(strand(voice("s" * 100 + "a" * 200), voice("s" * 100 + "b" * 90)))
    assert found is not None
    assert (found.left_out, len(found.shared)) == (100 - BEFORE, BEFORE)
    assert (len(found.baseline), found.baseline_left_out) == (AFTER, 200 - AFTER)
    assert (len(found.candidate), found.candidate_left_out) == (AFTER, 90 - AFTER)


def test_hidden_text_has_no_diff_and_no_token_column() -> None:
    hidden = strand(voice("ab"), voice("ac"), text=False)
    assert token_diff(hidden) is None
    figure = sequence_figure(hidden, "f", None)
    assert figure is not None
    assert not [name for name in figure.table.columns if name.startswith(("token", "candidate's"))]
    assert len(figure.table.columns) == len(figure.table.rows[0])


def test_pieces_that_were_not_kept_show_their_ids() -> None:
    found = token_diff(strand(Voice(ids=(7, 8), pieces=(), logprob=np.zeros(2), margin=np.zeros(2)), voice("ab")))
    assert found is not None
    assert [c.text for c in found.baseline][:2] == ["#7", "#8"]


def test_differences_are_drawn_up_to_the_divergence_and_margins_throughout() -> None:
    a = voice("abcd", logprob=(-1.0, -2.0, -3.0, -4.0), margin=(1.0, 10.0, 0.0, 2.0))
    b = voice("abxy", logprob=(-1.5, -2.0, -9.0, -9.0), margin=(1.0, 10.0, 0.1, 3.0))
    found = sequence_figure(strand(a, b), "f", None)
    assert found is not None
    delta, margins = found.panels
    assert [stem.x for stem in delta.stems] == [12.5, 37.5]
    assert delta.stems[1].y == delta.height  # no movement stands at zero
    assert [line.css for line in margins.lines] == ["baseline", "candidate"]
    assert (found.mark, found.veil) == (62.5, 75.0)
    assert [row[3] for row in found.table.rows] == ["0.5", "0", "", ""]
    assert found.table.rows[2][:3] == ("2", "c", "x")


def test_the_first_token_differing_leaves_no_difference_to_draw() -> None:
    found = sequence_figure(strand(voice("a"), voice("b")), "f", None)
    assert found is not None
    assert len(found.panels) == 1


def test_a_number_that_is_not_finite_is_marked_and_breaks_the_line() -> None:
    a = voice("abc", logprob=(-1.0, math.nan, -math.inf), margin=(1.0, math.nan, 2.0))
    b = voice("abc", logprob=(-1.0, -1.0, -math.inf), margin=(1.0, 1.0, 2.0))
    found = sequence_figure(strand(a, b), "f", None)
    assert found is not None
    delta, margins = found.panels
    assert delta.lost == (50.0, pytest.approx(83.333))
    assert margins.lost == (50.0,)
    assert margins.lines[0].path.count("M") == 2
    assert found.table.rows[1][2:] == ("nan", "nan", "-1", "nan", "1")


def test_a_score_is_held_against_its_canary_s_limit_and_ties_against_f() -> None:
    found = sequence_figure(strand(voice("ab"), voice("ab"), Probe.SCORE), "f", FLOORS)
    assert found is not None
    assert {rule.css for panel in found.panels for rule in panel.rules} == {"mean", "limit", "tie"}
    words = dict(found.legend)
    assert "0.04" in words["limit"]  # twice the canary's own 0.02
    assert "0.5" in words["tie"]


def test_at_a_divergence_f_is_never_below_one_ulp() -> None:
    found = sequence_figure(strand(voice("ab"), voice("ac")), "f", FLOORS)
    assert found is not None
    assert "0.75" in dict(found.legend)["tie"]
    assert "limit" not in dict(found.legend)  # a decode chose its own context


@pytest.mark.parametrize("at", [0, 500, 999])
def test_a_long_sequence_is_drawn_around_its_divergence(at: int) -> None:
    found = sequence_figure(strand(voice("s" * at + "a" * (1000 - at)), voice("s" * at + "b" * (1000 - at))), "f", None)
    assert found is not None
    assert len(found.table.rows) == WINDOW
    assert str(at) in [row[0] for row in found.table.rows]
    assert "of 1000" in found.notes[0]


def test_without_a_divergence_the_largest_movement_is_inside() -> None:
    moved = [-1.0] * 1000
    moved[700] = -5.0
    found = sequence_figure(strand(voice("s" * 1000), voice("s" * 1000, logprob=moved), Probe.SCORE), "f", None)
    assert found is not None
    assert "700" in [row[0] for row in found.table.rows]


def test_nothing_put_out_is_no_figure() -> None:
    assert sequence_figure(strand(voice(""), voice("")), "f", None) is None
