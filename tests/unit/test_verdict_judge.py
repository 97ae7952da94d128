"""The verdict table row by row and in every combination; severities; first divergence; place; what is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftpin.comparison.facts import (
    CheckChange,
    Comparison,
    Depth,
    Divergence,
    Movement,
    PromptDifference,
    TraceComparison,
    Unmeasured,
)
from driftpin.environment.environment import Equality
from driftpin.settings.policy import NEW_STACK, SAME_STACK, Policy, Severity
from driftpin.trace.health import Ill
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.diagnosis import NO_REFERENCE
from driftpin.verdict.judge import NO_YARDSTICK, Circumstances, judge, unblessed
from driftpin.verdict.kind import VerdictKind, exit_code
from driftpin.verdict.outcome import RANK, Outcome, trace_findings

CALM = Circumstances(model=Equality.SAME, stack=Equality.SAME, behaviour=Equality.SAME)
PROMPT = PromptDifference(index=0, baseline_ids=(1,), candidate_ids=(2,), lengths=(3, 3), text_differs=True)
FLIP = Divergence(
    position=4,
    baseline_id=1,
    candidate_id=2,
    baseline_margin=0.5,
    candidate_margin=0.25,
    movement=0.75,
    missing=None,
    before="so",
    baseline_text="yes",
    candidate_text="no",
)
MOVED = Movement(positions=5, moved=2, first_moved=3, mean_abs_logprob=0.1, max_abs_logprob=0.3, max_pair=0.5)
CHECK = CheckChange(check={"contains": "x"}, baseline=True, candidate=False, detail="not found")

# One canary per row of the table that a canary can make hold.
ROWS: dict[VerdictKind, dict[str, Any]] = {
    VerdictKind.INVALID: {"candidate_ills": (Ill.NOT_GREEDY,)},
    VerdictKind.BROKEN: {"candidate_ills": (Ill.NONFINITE,)},
    VerdictKind.DRIFT: {"divergence": FLIP, "tokens_equal": False},
    VerdictKind.NUMERIC: {"movement": MOVED},
}


def key(canary: str, probe: Probe = Probe.DECODE) -> TraceKey:
    return TraceKey(canary=canary, probe=probe)


def trace(canary: str = "c", probe: Probe = Probe.DECODE, **parts: Any) -> TraceComparison:
    return TraceComparison(**{"key": key(canary, probe), "identical": False, "tokens_equal": True, **parts})


def comparison(*changed: TraceComparison, identical: tuple[str, ...] = (), **parts: Any) -> Comparison:
    unmeasured = [m.key.canary for m in parts.get("unmeasured", ())]
    order = dict.fromkeys([*identical, *(t.key.canary for t in changed), *unmeasured])
    order |= dict.fromkeys([*parts.get("new", ()), *parts.get("removed", ())])
    keys = tuple(key(canary) for canary in identical)
    return Comparison(**{"order": tuple(order), "identical": keys, "changed": changed, **parts})


def combined(rows: frozenset[VerdictKind]) -> tuple[Comparison, Circumstances]:
    """A comparison in which exactly these rows hold; an incomparable one has no canary that was asked the same."""
    changed = [trace(kind.value, **parts) for kind, parts in ROWS.items() if kind in rows]
    if VerdictKind.INCOMPARABLE in rows:
        changed = [trace("asked", prompt=PROMPT)]
    unmeasured = [Unmeasured(key=key("lost"), reason="why")] if VerdictKind.INCOMPLETE in rows else []
    only_model = VerdictKind.INCOMPARABLE in rows and VerdictKind.DRIFT in rows
    return (
        comparison(
            *changed,
            identical=() if VerdictKind.INCOMPARABLE in rows else ("calm",),
            unmeasured=tuple(unmeasured),
            repeats_differ=(key("calm"),) if VerdictKind.UNSTABLE in rows else (),
        ),
        replace(CALM, model=Equality.DIFFERENT if only_model else Equality.SAME),
    )


def possible() -> Iterator[frozenset[VerdictKind]]:
    kinds = [k for k in VerdictKind if k not in (VerdictKind.UNBLESSED, VerdictKind.MATCH)]
    for held in product((False, True), repeat=len(kinds)):
        rows = frozenset(kind for kind, holds in zip(kinds, held, strict=True) if holds)
        # What cannot be compared has neither ills nor movement to be judged by.
        if VerdictKind.INCOMPARABLE not in rows or not rows & (set(ROWS) - {VerdictKind.DRIFT}):
            yield rows


def test_of_all_combinations_of_rows_the_highest_is_the_verdict() -> None:
    seen = 0
    for rows in possible():
        held = min(rows, key=list(VerdictKind).index) if rows else VerdictKind.MATCH
        assert judge(*combined(rows), Policy()).kind is held, rows
        seen += 1
    assert seen == 64 + 8


@given(st.sampled_from(list(possible())), st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_decide(rows: frozenset[VerdictKind], chance: Any) -> None:
    facts, circumstances = combined(rows)
    changed = list(facts.changed)
    chance.shuffle(changed)
    again = judge(replace(facts, changed=tuple(changed)), circumstances, Policy())
    assert again == judge(facts, circumstances, Policy())


@pytest.mark.parametrize(
    ("kind", "plain", "strict", "comparing"),
    [
        (VerdictKind.INCOMPARABLE, 3, 3, 3),
        (VerdictKind.INVALID, 3, 3, 3),
        (VerdictKind.BROKEN, 1, 1, 1),
        (VerdictKind.UNSTABLE, 1, 1, 1),
        (VerdictKind.DRIFT, 1, 1, 1),
        (VerdictKind.INCOMPLETE, 3, 3, 3),
        (VerdictKind.NUMERIC, 0, 1, 0),
        (VerdictKind.UNBLESSED, 0, 0, 3),
        (VerdictKind.MATCH, 0, 0, 0),
    ],
)
def test_exit_codes(kind: VerdictKind, plain: int, strict: int, comparing: int) -> None:
    assert (exit_code(kind), exit_code(kind, strict=True), exit_code(kind, comparing=True)) == (
        plain,
        strict,
        comparing,
    )


SEVERITIES = [  # verdict, same stack, new stack
    (VerdictKind.INCOMPARABLE, "page", "ticket"),
    (VerdictKind.INVALID, "page", "page"),
    (VerdictKind.BROKEN, "page", "page"),
    (VerdictKind.UNSTABLE, "ticket", "ticket"),
    (VerdictKind.DRIFT, "page", "ticket"),
    (VerdictKind.INCOMPLETE, "ticket", "ticket"),
    (VerdictKind.NUMERIC, "ticket", "info"),
    (VerdictKind.MATCH, "none", "none"),
]


@pytest.mark.parametrize(("kind", "same", "new"), SEVERITIES)
def test_severities_of_the_default_policy(kind: VerdictKind, same: str, new: str) -> None:
    rows = frozenset() if kind is VerdictKind.MATCH else frozenset({kind})
    facts, calm = combined(rows)
    for stack, expected in ((Equality.SAME, same), (Equality.DIFFERENT, new), (Equality.UNDETERMINED, same)):
        verdict = judge(facts, replace(calm, stack=stack), Policy())
        assert (verdict.kind, verdict.severity.value) == (kind, expected)


def test_an_undetermined_stack_is_judged_as_the_same_and_says_so() -> None:
    verdict = judge(*combined(frozenset()), Policy())
    undetermined = judge(comparison(identical=("a",)), replace(CALM, stack=Equality.UNDETERMINED), Policy())
    assert verdict.remarks == ()
    assert "undetermined" in undetermined.remarks[0]


def test_a_changed_check_is_as_loud_on_a_new_stack_as_on_the_same() -> None:
    new = replace(CALM, stack=Equality.DIFFERENT)
    flip = trace("a", divergence=FLIP, tokens_equal=False)
    assert judge(comparison(flip), new, Policy()).severity is Severity.TICKET
    assert judge(comparison(replace(flip, checks=(CHECK,))), new, Policy()).severity is Severity.PAGE


def test_a_policy_decides_the_severity_and_never_the_verdict() -> None:
    quiet = dict.fromkeys(SAME_STACK, Severity.NONE)
    verdict = judge(*combined(frozenset({VerdictKind.BROKEN})), Policy(same_stack=quiet, new_stack=NEW_STACK))
    assert (verdict.kind, verdict.severity) == (VerdictKind.BROKEN, Severity.NONE)


def test_a_changed_model_digest_is_drift_although_every_output_is_identical() -> None:
    verdict = judge(comparison(identical=("a", "b")), replace(CALM, model=Equality.DIFFERENT), Policy())
    assert (verdict.kind, verdict.counts) == (VerdictKind.DRIFT, {Outcome.IDENTICAL: 2})
    assert verdict.headline == "drift: the model changed; 2 identical of 2 canaries"


@pytest.mark.parametrize(
    ("reproduced", "kind"), [(None, VerdictKind.DRIFT), (True, VerdictKind.DRIFT), (False, VerdictKind.UNSTABLE)]
)
def test_only_a_change_that_did_not_show_again_is_unstable(reproduced: bool | None, kind: VerdictKind) -> None:
    facts, calm = combined(frozenset({VerdictKind.DRIFT}))
    assert judge(facts, replace(calm, reproduced=reproduced), Policy()).kind is kind


def test_an_unmeasured_canary_never_hides_drift_and_is_named() -> None:
    verdict = judge(*combined(frozenset({VerdictKind.DRIFT, VerdictKind.INCOMPLETE})), Policy())
    assert verdict.kind is VerdictKind.DRIFT
    no_word = f"Whether this is rounding or a defect: {NO_REFERENCE}."
    assert verdict.unseen == ("Not measured: lost.", NO_YARDSTICK, no_word)
    assert verdict.counts[Outcome.UNMEASURED] == 1


@pytest.mark.parametrize(
    ("changed", "redefined", "kind"),
    [
        ({"a"}, set(), VerdictKind.INCOMPLETE),  # somebody else changed one prompt
        ({"a"}, {"a"}, VerdictKind.MATCH),  # the suite's author did
        ({"a", "b"}, {"a"}, VerdictKind.INCOMPLETE),
        ({"a", "b", "c"}, set(), VerdictKind.INCOMPARABLE),
        ({"a", "b", "c"}, {"a"}, VerdictKind.INCOMPARABLE),
        ({"a", "b", "c"}, {"a", "b", "c"}, VerdictKind.INCOMPARABLE),  # nothing of the baseline was asked again
    ],
)
def test_prompts_that_changed(changed: set[str], redefined: set[str], kind: VerdictKind) -> None:
    asked = [trace(canary, prompt=PROMPT) for canary in sorted(changed)]
    facts = comparison(*asked, identical=tuple(sorted({"a", "b", "c"} - changed)))
    verdict = judge(facts, replace(CALM, suite_changed=frozenset(redefined)), Policy())
    assert verdict.kind is kind
    assert verdict.counts[Outcome.INPUT_CHANGED] == len(changed)


def test_a_mismatched_declaration_of_all_is_incomparable_and_of_some_incomplete() -> None:
    other = trace("a", mismatched=("k: 20 in the baseline, 5 in the candidate",))
    assert judge(comparison(other), CALM, Policy()).kind is VerdictKind.INCOMPARABLE
    some = judge(comparison(other, identical=("b",)), CALM, Policy())
    assert (some.kind, some.unseen) == (VerdictKind.INCOMPLETE, ("Not measured: a.", NO_YARDSTICK))


def test_a_match_calls_only_identical_canaries_identical() -> None:
    assert judge(comparison(identical=("a",)), CALM, Policy()).headline == "match: 1 canary identical"
    grown = judge(comparison(identical=("a",), new=("b",), removed=("c",)), CALM, Policy())
    assert grown.kind is VerdictKind.MATCH
    assert grown.headline == "match: 1 new, 1 removed, 1 identical of 3 canaries"


def test_ills_of_an_identical_trace_are_still_said() -> None:
    for ill, kind in ((Ill.NONFINITE, VerdictKind.BROKEN), (Ill.NOT_GREEDY, VerdictKind.INVALID)):
        facts = comparison(identical=("a",), identical_ills={key("a"): (ill,)})
        assert judge(facts, CALM, Policy()).kind is kind


def test_no_baseline_is_unblessed() -> None:
    assert (unblessed().kind, unblessed().severity) == (VerdictKind.UNBLESSED, Severity.INFO)


def test_the_first_divergence_is_the_first_in_suite_order_and_of_its_decode() -> None:
    parted = {"divergence": FLIP, "tokens_equal": False}
    facts = comparison(
        trace("b", Probe.SCORE, **parted), trace("b", **parted), trace("a", **parted), trace("0", prompt=PROMPT)
    )
    first = judge(facts, CALM, Policy()).first
    assert first is not None
    assert (first.canary, first.probe, first.divergence.position) == ("b", Probe.DECODE, 4)


# Outcomes of one execution


def names(**parts: Any) -> list[Outcome]:
    return sorted((finding.outcome for finding in trace_findings(trace(**parts))), key=RANK.__getitem__)


def test_outcomes_are_all_kept_and_the_first_said_names_the_canary() -> None:
    everything = {"candidate_ills": (Ill.NONFINITE, Ill.NOT_GREEDY), "checks": (CHECK,), "divergence": FLIP}
    assert names(**everything) == [Outcome.INVALID, Outcome.BROKEN, Outcome.CHECK_CHANGED, Outcome.FLIP]
    verdict = judge(comparison(trace(**everything)), CALM, Policy())
    assert verdict.canaries[0].outcome is Outcome.INVALID


def test_a_changed_prompt_blames_nothing_else() -> None:
    assert names(prompt=PROMPT, divergence=FLIP, candidate_ills=(Ill.NONFINITE,)) == [Outcome.INPUT_CHANGED]


def test_one_token_for_ever_is_broken_unless_the_baseline_did_the_same() -> None:
    assert names(candidate_ills=(Ill.ONE_TOKEN,)) == [Outcome.BROKEN, Outcome.NUMERIC]
    assert names(candidate_ills=(Ill.ONE_TOKEN,), baseline_ills=(Ill.ONE_TOKEN,)) == [Outcome.NUMERIC]


def test_layers_alone_do_not_move_an_outcome() -> None:
    assert names(identical=True) == [Outcome.IDENTICAL]


def test_a_check_that_cannot_be_evaluated_is_no_pass() -> None:
    (finding, *_) = trace_findings(trace(checks=(replace(CHECK, candidate=None),)))
    assert finding.why == "check contains: passed before, not evaluable now (not found)"


# Place


def depth(index: int | None, position: int | None = 9) -> Depth:
    block = None if index is None else f"blocks.{index}"
    return Depth(block=block, index=index, blocks=4, position=position, ratio_rms=None)


def place(*traces: TraceComparison, stack: Equality = Equality.SAME) -> Any:
    return judge(comparison(*traces), replace(CALM, stack=stack), Policy()).place


def test_the_place_is_the_commonest_block_and_scores_are_asked_first() -> None:
    scores = [trace(c, Probe.SCORE, movement=MOVED, depth=depth(n)) for c, n in (("a", 2), ("b", 2), ("c", 1))]
    found = place(*scores, trace("a", movement=MOVED, depth=depth(0)))
    assert (found.block, found.index, found.agreeing, found.asked, found.canary) == ("blocks.2", 2, 2, 3, "a")
    assert "in blocks.2 (block 3 of 4)" in found.sentence


def test_equally_common_blocks_give_the_earliest_and_behind_all_blocks_is_last() -> None:
    tied = [trace("a", movement=MOVED, depth=depth(None, None)), trace("b", movement=MOVED, depth=depth(3))]
    assert place(*tied).block == "blocks.3"
    assert "behind the last block" in place(tied[0]).sentence


def test_a_choice_otherwise_with_equal_logits_is_not_placed_in_the_model() -> None:
    still = replace(MOVED, moved=0, first_moved=None)
    found = place(trace("a", divergence=FLIP, movement=still, depth=depth(1)))
    assert (found.found, found.block) == (True, None)
    assert "behind the logits" in found.sentence


def test_bits_say_nothing_on_a_new_stack_or_without_layers() -> None:
    moved = trace("a", movement=MOVED, depth=depth(1))
    assert not place(moved, stack=Equality.DIFFERENT).found
    assert place(moved, stack=Equality.UNDETERMINED).block == "blocks.1"
    bare = place(trace("a", movement=MOVED, depth_absent="the candidate has no layers: quota"))
    assert (bare.found, bare.sentence) == (False, "not localisable: the candidate has no layers: quota")
    asked = place(trace("a", prompt=PROMPT))
    assert (asked.found, asked.block) == (False, None)
    assert "the input changed" in asked.sentence


def test_where_text_is_hidden_findings_say_sizes_and_quote_nothing() -> None:
    """An output, a prompt's ids, what a check found and what a worker said last may all hold text."""
    quoting = comparison(
        trace("flip", divergence=FLIP),
        trace("check", checks=(replace(CHECK, detail="'secret' is not in it"),), movement=MOVED),
        trace("prompt", prompt=replace(PROMPT, baseline_ids=(77,), candidate_ids=(78,))),
        unmeasured=(Unmeasured(key=key("lost"), reason="the worker died at 'secret'"),),
    )
    told = {c.canary: c.findings[0] for c in judge(quoting, CALM, Policy()).canaries}
    assert {name: finding.told(text=False) for name, finding in told.items()} == {
        "flip": "tokens part at output 4; D = 0.75, the baseline's margin there was 0.5",
        "check": "check contains: passed before, failed now",
        "prompt": "prompt ids changed at index 0 (3 ids before, 3 now)",
        "lost": "the reason is kept in the store, since the suite's text is hidden",
    }
    words = {"flip": "'yes' became 'no'", "check": "'secret'", "prompt": "[77] became [78]", "lost": "'secret'"}
    assert [name for name, finding in told.items() if words[name] not in finding.told(text=True)] == []
