"""Margins against the yardstick: bands, what flipped, what decode and score have in common, and the words for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.trace.head import Declaration, Head
from driftpin.trace.probe import Arm, Probe, Shape, StopReason
from driftpin.workflow.suite_check_closeness import close_to_json, margin_findings
from driftpin.workflow.suite_check_margins import Band, Margins, Measured, histogram, margins_of

F = 0.5
WIDE = 12.0  # logits: 24 F


def head(*margins: float, swapped: tuple[int, ...] = ()) -> Head:
    """Positions whose best two ids, 7 and 3, lie that far apart; where `swapped`, 3 is on top by as much."""
    count = len(margins)
    ids = np.tile(np.array([7, 3, 5], np.int32), (count, 1))
    ids[list(swapped)] = [3, 7, 5]
    top = np.full((count, 1), 20.0)
    below = top - np.array(margins)[:, None]
    declared = Declaration(
        probe=Probe.DECODE, arm=Arm.NATIVE, shape=Shape.ALONE, batch="rows=1", cache="none", token_limit=count, k=3
    )
    return Head(
        declared=declared,
        stop=StopReason.LENGTH,
        dtype="float32",
        vocab=9,
        prompt_ids=np.arange(2, dtype=np.int32),
        output_ids=ids[:, 0].copy(),
        logprob=np.zeros(count, np.float32),
        margin=np.array(margins, np.float32),
        entropy=np.zeros(count, np.float32),
        logsumexp=np.zeros(count, np.float32),
        topk_ids=ids,
        topk_logits=np.concatenate([top, below, below - 1], axis=1).astype(np.float32),
        boundary_ties=np.zeros(count, np.int32),
        digest=np.zeros(count, np.uint64),
        nonfinite=np.zeros(count, np.int32),
        greedy=np.ones(count, np.uint8),
    )


def held(decode: Head, score: Head | None = None, *perturbed: Head, canary: str = "a") -> Margins:
    found = margins_of(Measured(canary=canary, head=decode, score=score, perturbed=perturbed), F)
    assert found is not None
    return found


def said(*found: Margins, text: bool = True) -> list[Finding]:
    return list(margin_findings(found, F, {7: " the", 3: " a"}, text=text))


@pytest.mark.parametrize(
    ("smallest", "band"),
    [(0.0, Band.TIE), (0.25, Band.NEAR), (0.5, Band.BETWEEN), (10.0, Band.BETWEEN), (10.5, Band.FAR)],
)
def test_bands_of_a_quiet_canary(smallest: float, band: Band) -> None:
    decode = head(WIDE, smallest, WIDE)
    found = held(decode, decode, decode, decode)
    assert (found.band, found.at, found.ratio, found.positions) == (band, 1, smallest / F, 3)


def test_a_disturbed_score_with_another_top_token_is_a_flip() -> None:
    decode = head(WIDE, 1.0, WIDE)
    found = held(decode, decode, decode, head(WIDE, 0.25, WIDE, swapped=(1,)))
    assert found.band is Band.FLIPS  # although the margin is 2 F
    [close] = found.close
    assert (close.position, close.top, close.second, close.flipped, close.runs, close.scored) == (1, 7, 3, 1, 2, True)


def test_flips_are_counted_against_the_undisturbed_score() -> None:
    swapped = head(WIDE, 0.25, WIDE, swapped=(1,))
    found = held(head(WIDE, 0.25, WIDE), swapped, swapped, swapped)
    [close] = found.close
    assert (close.flipped, close.scored, found.band) == (0, False, Band.FLIPS)
    assert found.parting is not None
    assert (found.parting.position, found.parting.ratio) == (1, 1.0)  # 0.25 to -0.25 logits
    [finding] = said(found)
    assert "another token when scored instead of generated" in finding.sentence


def test_more_than_rounding_between_decode_and_score_is_no_flip() -> None:
    found = held(head(6.0, WIDE), head(6.0, WIDE, swapped=(0,)), head(6.0, WIDE, swapped=(0,)))
    assert found.loud == ()
    assert found.parting is not None
    assert found.parting.ratio == 24.0
    [finding] = said(found)
    assert finding.kind is FindingKind.TWO_PATHS
    assert "at output token 0 their top two logits lie 12 apart, 24 F" in finding.sentence


def test_without_a_score_only_the_margins_speak() -> None:
    found = held(head(WIDE, 0.25))
    assert (found.band, found.parting, [c.position for c in found.close]) == (Band.NEAR, None, [1])
    assert found.to_json()["decode_to_score"] is None


def test_margins_that_are_no_numbers_are_left_out() -> None:
    assert margins_of(Measured(canary="a", head=head(np.nan, np.inf), score=None, perturbed=()), F) is None
    found = held(head(np.nan, 2.0, np.inf))
    assert (found.smallest, found.at, found.close) == (2.0, 1, ())


def test_a_vocabulary_of_one_has_no_margin() -> None:
    lone = replace(head(1.0), topk_ids=np.zeros((1, 1), np.int32), topk_logits=np.zeros((1, 1), np.float32))
    assert margins_of(Measured(canary="a", head=lone, score=None, perturbed=()), F) is None


def test_a_tie_and_a_flip_are_told_with_their_tokens() -> None:
    decode = head(*([WIDE] * 9), 0.0, 0.25)
    flipping = head(*([WIDE] * 9), 0.0, 0.25, swapped=(10,))
    [finding] = said(held(decode, decode, decode, flipping))
    assert (finding.kind, finding.level, finding.canaries) == (FindingKind.TIE, Level.WARNING, ("a",))
    assert "output token 9, ' the' over ' a', exactly tied" in finding.sentence
    assert "output token 10, ' the' over ' a', by 0.25 logits, another token in 1 of 2 disturbed" in finding.sentence
    assert "(F = 0.5)" in finding.sentence
    assert finding.remedy.startswith("Set max_new_tokens to 9 ")


def test_an_early_flip_is_not_mended_by_cutting() -> None:
    decode = head(0.0, WIDE)
    [finding] = said(held(decode, decode))
    assert finding.remedy.startswith("Reword the prompt")


def test_hidden_text_names_no_token() -> None:
    decode = head(0.0, WIDE)
    found = held(decode, decode)
    [finding] = said(found, text=False)
    assert "the" not in finding.sentence.replace("other", "")
    assert "output token 0, exactly tied" in finding.sentence
    [close] = found.close
    assert set(close_to_json(close, {7: " the"}, text=False)) == {"position", "margin", "scored", "flipped", "runs"}
    shown = close_to_json(close, {7: " the"}, text=True)
    assert (shown["top"], shown["top_text"], shown["second"], shown["second_text"]) == (7, " the", 3, None)


def test_near_ones_are_one_note() -> None:
    near = [held(head(0.25, 0.25, WIDE), canary="x"), held(head(WIDE, 0.25), canary="y"), held(head(2.0), canary="z")]
    [finding] = said(*near)
    assert (finding.kind, finding.level, finding.canaries) == (FindingKind.NEAR, Level.NOTE, ("x", "y"))
    assert "x (2, first at 0), y (1, first at 1)" in finding.sentence


def test_far_ones_are_one_note_that_knows_whether_all_are() -> None:
    far = [held(head(WIDE), canary="x"), held(head(11.0), canary="y")]
    [everything] = said(*far)
    assert everything.sentence.startswith("All 2 canaries are far from any tie")
    assert "'y', output token 0: 11 logits, 22 F" in everything.sentence
    [some] = said(*far, held(head(2.0), canary="z"))
    assert some.sentence.startswith("2 of 3 canaries are far")
    assert some.canaries == ("x", "y")


def test_the_histogram_counts_every_canary_once() -> None:
    found = [held(head(size)) for size in (0.0, 0.25, 0.5, 2.0, 12.0, 1000.0)]
    counts = {row["from"]: row["count"] for row in histogram(found)}
    assert counts == {0.0: 1, 0.1: 0, 0.25: 0, 0.5: 1, 1.0: 2, 5.0: 0, 20.0: 1, 100.0: 0, 1000.0: 1}
    assert histogram(found)[-1]["to"] is None
