"""Pairing two manifests: what is held against what, what is missing and why, and which blobs have to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from store_samples import head, layers

from driftpin.comparison.compare import EmptyComparisonError, compare, needed, repeats_differ
from driftpin.comparison.facts import Comparison
from driftpin.comparison.side import Side
from driftpin.suite.canary import Canary, Check, CheckKind, Suite
from driftpin.trace.health import Ill
from driftpin.trace.probe import Probe, TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry, Trace, TraceSet

CHECK = Check(kind=CheckKind.CONTAINS, value="4")


def suite(*ids: str) -> Suite:
    canaries = tuple(Canary(id=name, prompt=name, checks=(CHECK,)) for name in ids)
    return Suite(name="s", canaries=canaries)


def trace(canary: str = "a", seed: int = 0, repeat: int = 0, piece: bytes = b"4", **parts: Any) -> Trace:
    key = TraceKey(canary=canary, probe=Probe.DECODE, repeat=repeat)
    text = TraceText(rendered="Hi", pieces=(piece,))
    return Trace(
        **{"key": key, "input_digest": "11" * 32, "head": head(seed), "layers": layers(seed), "text": text, **parts}
    )


def lost(canary: str, reason: str = "it crashed") -> Entry:
    return Entry(key=TraceKey(canary=canary, probe=Probe.DECODE), unmeasured=reason)


def side(canaries: Suite, *recorded: Trace | Entry) -> Side:
    traces = [r for r in recorded if isinstance(r, Trace)]
    return Side(
        suite=canaries,
        traces=TraceSet.of(r.entry() if isinstance(r, Trace) else r for r in recorded),
        heads={t.head.sha256: t.head for t in traces},
        layers={t.layers.sha256: t.layers for t in traces if t.layers},
        texts={t.text.sha256: t.text for t in traces},
    )


def reasons(found: Comparison) -> dict[str, str]:
    return {missing.key.canary: missing.reason for missing in found.unmeasured}


def test_equal_manifests_need_no_blob() -> None:
    one = side(suite("a", "b"), trace("a", 1), trace("b", 2))
    bare = Side(suite=one.suite, traces=one.traces)
    assert needed(bare, bare) == ([], [])
    found = compare(bare, bare)
    assert [key.canary for key in found.identical] == ["a", "b"]
    assert (found.changed, found.unmeasured, found.new, found.removed) == ((), (), (), ())


def test_only_blobs_of_unequal_entries_are_asked_for() -> None:
    old = side(suite("a", "b", "c"), trace("a", 1), trace("b", 2), lost("c"))
    new = side(suite("a", "b", "c"), trace("a", 1), trace("b", 3), trace("c", 4))
    asked = [[entry.key.canary for entry in entries] for entries in needed(old, new)]
    assert asked == [["b"], ["b", "c"]]


def test_every_canary_appears_and_in_suite_order() -> None:
    old = side(suite("z", "gone", "a"), trace("z", 1), trace("gone", 2), trace("a", 3))
    new = side(suite("z", "fresh", "a"), trace("z", 1), trace("fresh", 2), trace("a", 4))
    found = compare(old, new)
    assert found.order == ("z", "fresh", "a", "gone")
    assert [key.canary for key in found.identical] == ["z"]
    assert [changed.key.canary for changed in found.changed] == ["a"]
    assert (found.new, found.removed) == (("fresh",), ("gone",))


def test_what_was_lost_has_a_reason_and_is_never_agreement() -> None:
    old = side(suite("a", "b", "c", "d"), trace("a"), trace("b"), trace("c"), lost("d", "too long"))
    new = side(suite("a", "b", "c", "d"), trace("a"), lost("b"), trace("d"))
    found = compare(old, new)
    assert [key.canary for key in found.identical] == ["a"]
    assert reasons(found) == {
        "b": "it crashed",
        "c": "the replay recorded nothing for this canary",
        "d": "the baseline could not measure it: too long",
    }


def test_an_execution_of_a_kind_that_the_baseline_lacks_is_not_measured() -> None:
    score = replace(trace("a"), key=TraceKey(canary="a", probe=Probe.SCORE))
    found = compare(side(suite("a"), trace("a")), side(suite("a"), trace("a"), score))
    assert reasons(found) == {"a": "the baseline holds no execution of this kind"}


def test_repeats_are_held_against_the_baselines_first_and_against_their_own() -> None:
    old = side(suite("a"), trace("a", 1), trace("a", 1, repeat=1))
    new = side(suite("a"), trace("a", 1), trace("a", 2, repeat=1), trace("a", 1, repeat=2))
    found = compare(old, new)
    assert [key.repeat for key in found.identical] == [0, 2]
    assert [changed.key.repeat for changed in found.changed] == [1]
    assert [key.repeat for key in found.repeats_differ] == [1]
    assert repeats_differ(old) == ()


@pytest.mark.parametrize("recorded", [(), (trace("b"),)])
def test_a_comparison_that_measured_nothing_in_common_is_an_error(recorded: tuple[Trace, ...]) -> None:
    canaries = suite(*(t.key.canary for t in recorded))
    with pytest.raises(EmptyComparisonError, match="is empty"):
        compare(side(suite("a"), trace("a")), side(canaries, *recorded))


def test_layers_alone_may_differ_and_the_trace_is_identical() -> None:
    old, new = trace("a", 1), replace(trace("a", 1), layers=layers(2))
    (changed,) = compare(side(suite("a"), old), side(suite("a"), new)).changed
    assert (changed.identical, changed.tokens_equal) == (True, True)
    assert changed.depth is not None
    assert changed.depth.block == "model.layers.0"


@pytest.mark.parametrize(("which", "lacking"), [(0, "baseline"), (1, "candidate")])
def test_absent_layers_have_a_reason_and_no_place(which: int, lacking: str) -> None:
    both = [trace("a", 1), trace("a", 2)]
    both[which] = replace(both[which], layers=None, layers_absent="over quota")
    (changed,) = compare(*(side(suite("a"), one) for one in both)).changed
    assert (changed.depth, changed.depth_absent) == (None, f"the {lacking} has no layers: over quota")


def test_checks_are_run_on_both_stored_outputs_and_only_changes_are_told() -> None:
    found = compare(
        side(suite("a", "b"), trace("a", 1), trace("b", 1, piece=b"5")),
        side(suite("a", "b"), trace("a", 2, piece=b"four"), trace("b", 2, piece=b"6")),
    )
    told = {changed.key.canary: [(c.baseline, c.candidate) for c in changed.checks] for changed in found.changed}
    assert told == {"a": [(True, False)], "b": []}


def test_a_changed_prompt_is_said_first_and_nothing_else_is() -> None:
    asked = replace(head(2), prompt_ids=np.array([9, 1, 2], np.int32))
    (changed,) = compare(
        side(suite("a"), trace("a", 1)), side(suite("a"), replace(trace("a", 2, piece=b"x"), head=asked))
    ).changed
    assert changed.prompt is not None
    assert (changed.divergence, changed.movement, changed.depth, changed.checks) == (None, None, None, ())


def test_a_rendered_text_that_differs_under_equal_ids_is_a_changed_prompt() -> None:
    other = replace(trace("a", 1), text=TraceText(rendered="Hi ", pieces=(b"4",)))
    (changed,) = compare(side(suite("a"), trace("a", 1)), side(suite("a"), other)).changed
    assert changed.prompt is not None
    assert (changed.prompt.index, changed.identical) == (None, False)


def test_ills_of_identical_traces_are_kept() -> None:
    ill = replace(trace("a", 1), head=replace(head(1), greedy=np.zeros(4, np.uint8)))
    found = compare(side(suite("a"), ill), side(suite("a"), ill))
    (key,) = found.identical
    assert Ill.NOT_GREEDY in found.identical_ills[key]


def test_non_finite_numbers_are_placed_in_the_candidate() -> None:
    hurt = layers(2)
    hurt.nonfinite[1, 2] = 1
    (changed,) = compare(side(suite("a"), trace("a", 1)), side(suite("a"), replace(trace("a", 2), layers=hurt))).changed
    assert changed.first_nonfinite == "non-finite from block model.layers.1 at position 5"
