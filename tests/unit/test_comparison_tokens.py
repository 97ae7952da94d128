"""Token comparison with logits small enough to do by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from driftpin.comparison import tokens
from driftpin.trace.digest import row_sums
from driftpin.trace.head import Declaration, Head
from driftpin.trace.probe import Arm, Probe, Shape, StopReason
from driftpin.trace.text import TraceText

A, B, C, D = 10, 11, 12, 13  # token ids


def head(
    rows: list[dict[int, float]], output: list[int] | None = None, prompt: tuple[int, ...] = (1, 2), **declared: Any
) -> Head:
    """One dict of kept logits per position, best first; emitted ids are the best ones unless given."""
    ids = np.array([list(row) for row in rows], np.int32)
    logits = np.array([list(row.values()) for row in rows], np.float32)
    lse = np.log(np.exp(logits.astype(np.float64)).sum(axis=1)).astype(np.float32)
    emitted = np.array(ids[:, 0] if output is None else output, np.int32)
    kept = [dict(zip(i, v, strict=True)) for i, v in zip(ids.tolist(), logits.tolist(), strict=True)]
    n, words = len(rows), {"probe": Probe.DECODE, "arm": Arm.NATIVE, "shape": Shape.ALONE, "batch": "rows=1"}
    return Head(
        declared=Declaration(**{**words, "cache": "none", "token_limit": 4, "k": ids.shape[1], **declared}),
        stop=StopReason.LENGTH,
        dtype="float32",
        vocab=20,
        prompt_ids=np.array(prompt, np.int32),
        output_ids=emitted,
        logprob=np.array([k.get(e, -9.0) for k, e in zip(kept, emitted.tolist(), strict=True)], np.float32) - lse,
        margin=logits[:, 0] - logits[:, 1],
        entropy=np.zeros(n, np.float32),
        logsumexp=lse,
        topk_ids=ids,
        topk_logits=logits,
        boundary_ties=np.zeros(n, np.int32),
        digest=row_sums(logits),
        nonfinite=np.zeros(n, np.int32),
        greedy=np.ones(n, np.uint8),
    )


def text(*pieces: bytes, rendered: str | None = "ask") -> TraceText:
    return TraceText(rendered=rendered, pieces=pieces)


BASE = head([{A: 5.0, B: 3.0}, {A: 4.0, B: 3.5}, {C: 2.0, A: 1.0}])


def test_equal_heads_are_identical_and_do_not_move() -> None:
    again = head([{A: 5.0, B: 3.0}, {A: 4.0, B: 3.5}, {C: 2.0, A: 1.0}])
    assert tokens.identical(BASE, again)
    moved = tokens.movement(BASE, again)
    assert moved is not None
    assert (moved.positions, moved.moved, moved.first_moved) == (3, 0, None)
    assert (moved.mean_abs_logprob, moved.max_abs_logprob, moved.max_pair) == (0.0, 0.0, 0.0)


def test_what_is_derived_does_not_decide() -> None:
    other = replace(BASE, entropy=BASE.entropy + 1, margin=BASE.margin + 1, topk_logits=BASE.topk_logits + 1)
    assert tokens.identical(BASE, other)


@pytest.mark.parametrize("change", [{"dtype": "bfloat16"}, {"vocab": 21}, {"digest": BASE.digest + np.uint64(1)}])
def test_logit_digests_type_and_vocabulary_decide(change: dict[str, Any]) -> None:
    assert not tokens.identical(BASE, replace(BASE, **change))


def test_movement_without_a_divergence_has_the_numbers_done_by_hand() -> None:
    """At position 1 the pair goes from 4.0-3.5 to 4.25-3.25: it moves by half."""
    other = head([{A: 5.0, B: 3.0}, {A: 4.25, B: 3.25}, {C: 2.0, A: 1.0}])
    moved = tokens.movement(BASE, other)
    assert moved is not None
    assert (moved.positions, moved.moved, moved.first_moved, moved.max_pair) == (3, 1, 1, 0.5)
    lp = [x - np.log(np.exp(x) + np.exp(y)) for x, y in ((4.0, 3.5), (4.25, 3.25))]
    assert moved.max_abs_logprob == pytest.approx(abs(lp[1] - lp[0]), abs=1e-6)
    assert moved.mean_abs_logprob == pytest.approx(abs(lp[1] - lp[0]) / 3, abs=1e-6)


def test_a_uniform_shift_moves_bits_but_neither_pairs_nor_probabilities() -> None:
    other = head([{A: 6.0, B: 4.0}, {A: 5.0, B: 4.5}, {C: 3.0, A: 2.0}])
    moved = tokens.movement(BASE, other)
    assert moved is not None
    assert (moved.moved, moved.first_moved, moved.max_pair) == (3, 0, 0.0)
    assert moved.max_abs_logprob < 1e-6


def test_a_flip_has_d_margins_and_the_text_around_it() -> None:
    """D = (4.0 - 3.5) - (3.25 - 4.25) = 1.5: the margin of half, and the candidate's one the other way."""
    other = head([{A: 5.0, B: 3.0}, {B: 4.25, A: 3.25}, {D: 2.0, A: 1.0}])
    at = tokens.divergence(BASE, other, text(b"one ", b"two ", b"three"), text(b"one ", b"2 ", b"3"))
    assert at is not None
    assert (at.position, at.baseline_id, at.candidate_id) == (1, A, B)
    assert (at.baseline_margin, at.candidate_margin, at.movement, at.missing) == (0.5, 1.0, 1.5, None)
    assert (at.before, at.baseline_text, at.candidate_text) == ("one ", "two three", "2 3")


def test_movement_up_to_a_flip_counts_its_logits_but_not_its_log_probability() -> None:
    other = head([{A: 5.0, B: 3.0}, {B: 4.25, A: 3.25}, {D: 9.0, A: 1.0}])
    moved = tokens.movement(BASE, other)
    assert moved is not None
    assert (moved.positions, moved.moved, moved.first_moved) == (2, 1, 1)
    assert (moved.mean_abs_logprob, moved.max_abs_logprob, moved.max_pair) == (0.0, 0.0, 1.5)


@pytest.mark.parametrize(
    ("old", "new", "lacking"),
    [
        ({A: 4.0, C: 3.5}, {B: 4.25, A: 3.25}, "baseline"),
        ({A: 4.0, B: 3.5}, {B: 4.25, C: 3.25}, "candidate"),
    ],
)
def test_a_token_missing_from_the_kept_alternatives_has_a_reason_and_no_d(
    old: dict[int, float], new: dict[int, float], lacking: str
) -> None:
    at = tokens.divergence(head([old]), head([new]), text(b"a"), text(b"b"))
    assert at is not None
    assert (at.movement, at.missing) == (None, f"the {lacking} kept no logit for one of the two tokens")


def test_a_pair_that_the_candidate_does_not_keep_is_not_a_movement_of_zero() -> None:
    moved = tokens.movement(head([{A: 4.0, B: 3.0}]), head([{A: 4.0, C: 3.5}]))
    assert moved is not None
    assert moved.max_pair is None


def test_an_infinite_logit_gives_no_d() -> None:
    at = tokens.divergence(head([{A: 4.0, B: -np.inf}]), head([{B: 4.0, A: 1.0}]), text(b"a"), text(b"b"))
    assert at is not None
    assert (at.movement, at.missing) == (None, "a logit is not finite")


def test_an_output_that_ends_earlier_diverges_at_its_end() -> None:
    shorter = head([{A: 5.0, B: 3.0}, {A: 4.0, B: 3.5}])
    at = tokens.divergence(BASE, shorter, text(b"a", b"b", b"c"), text(b"a", b"b"))
    assert at is not None
    assert (at.position, at.baseline_id, at.candidate_id, at.candidate_margin) == (2, C, None, None)
    assert (at.missing, at.baseline_text, at.candidate_text) == ("one output ended here", "c", "")
    moved = tokens.movement(BASE, shorter)
    assert moved is not None
    assert (moved.positions, moved.moved) == (2, 0)


def test_a_divergence_in_the_middle_of_a_character_still_has_text() -> None:
    at = tokens.divergence(head([{A: 2.0, B: 1.0}]), head([{B: 2.0, A: 1.0}]), text(b"\xc3"), text(b"\xa9"))
    assert at is not None
    assert at.baseline_text == at.candidate_text == "\N{REPLACEMENT CHARACTER}"


def test_the_prompt_is_asked_for_ids_and_for_text() -> None:
    asked = tokens.prompt_difference(BASE, head([{A: 1.0, B: 0.0}], prompt=(1, 3, 4)), text(), text())
    assert asked is not None
    assert (asked.index, asked.baseline_ids, asked.candidate_ids) == (1, (2,), (3, 4))
    assert (asked.lengths, asked.text_differs) == ((2, 3), False)
    only_text = tokens.prompt_difference(BASE, BASE, text(), text(rendered="other"))
    assert only_text is not None
    assert (only_text.index, only_text.text_differs) == (None, True)
    assert tokens.prompt_difference(BASE, BASE, text(b"x"), text(b"y")) is None


def test_a_longer_prompt_differs_at_the_end_of_the_shorter_one() -> None:
    asked = tokens.prompt_difference(BASE, head([{A: 1.0, B: 0.0}], prompt=(1, 2, 3)), text(), text())
    assert asked is not None
    assert (asked.index, asked.baseline_ids, asked.candidate_ids) == (2, (), (3,))


@pytest.mark.parametrize(
    ("fact", "value"),
    [("cache", "none:64"), ("batch", "rows=4"), ("token_limit", 9), ("k", 5), ("scheme", "v2"), ("arm", "x")],
)
def test_every_identity_fact_makes_a_sentence(fact: str, value: object) -> None:
    value = Arm.REFERENCE if fact == "arm" else value
    other = replace(BASE, declared=replace(BASE.declared, **{fact: value}))
    old = BASE.declared.to_json()[fact]
    assert tokens.mismatched_declaration(BASE, other) == (f"{fact}: {old} in the baseline, {value} in the candidate",)
    assert tokens.mismatched_declaration(BASE, BASE) == ()


def test_scores_forced_on_different_tokens_are_not_comparable_while_decodes_are() -> None:
    rows = [{A: 5.0, B: 3.0}]
    scores = [head(rows, [token], probe=Probe.SCORE) for token in (A, B)]
    assert tokens.mismatched_declaration(*scores) == ("the two scores were forced on different tokens",)
    assert tokens.mismatched_declaration(head(rows, [A]), head(rows, [B])) == ()


@pytest.mark.parametrize(
    ("a", "b", "at"), [([], [], None), ([1], [1], None), ([1, 2], [1, 3], 1), ([1], [1, 2], 1), ([], [1], 0)]
)
def test_first_difference(a: list[int], b: list[int], at: int | None) -> None:
    assert tokens.first_difference(np.array(a, np.int32), np.array(b, np.int32)) == at


def test_two_scores_part_where_their_arg_maxes_first_differ_whatever_was_forced() -> None:
    forced = [A, A, A]
    old = head([{A: 5.0, B: 3.0}, {A: 4.0, B: 3.5}, {C: 2.0, A: 1.0}], forced)
    new = head([{A: 5.0, B: 3.0}, {B: 4.25, A: 3.25}, {A: 2.0, C: 1.0}], forced)
    parted = tokens.top_moved(old, new)
    assert parted is not None
    assert (parted.position, parted.movement, parted.ulp) == (1, 1.5, 2**-21)
    assert tokens.top_moved(old, head([{A: 9.0, B: 3.0}, {A: 4.0, D: 3.5}, {C: 2.0, A: 1.0}], forced)) is None
    gone = tokens.top_moved(old, head([{C: 5.0, D: 3.0}, {A: 4.0, B: 3.5}, {C: 2.0, A: 1.0}], forced))
    assert gone is not None
    assert (gone.position, gone.movement) == (0, None)
