"""Two replays in opposite orders, held against each other by their digests."""

from __future__ import annotations

from itertools import combinations

from driftpin.suite.canary import Canary, Suite
from driftpin.suite.finding import FindingKind
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.traceset import Entry, TraceSet
from driftpin.workflow.suite_check_order import compared, dependences, differing, in_reverse, order_findings

SUITE = Suite(name="s", canaries=tuple(Canary(id=name, prompt=name) for name in ("a", "b", "c")))


def traces(**heads: str) -> TraceSet:
    """One decode and one score per canary; a head is named by its canary and, in the decode, what is given."""
    entries = []
    for canary in SUITE.ids:
        decode = TraceKey(canary=canary, probe=Probe.DECODE)
        entries.append(Entry(key=decode, head=heads.get(canary, "same"), layers=heads.get(f"{canary}_layers", "same")))
        entries.append(Entry(key=TraceKey(canary=canary, probe=Probe.SCORE), head=heads.get(f"{canary}_score", "same")))
        perturbed = TraceKey(canary=canary, probe=Probe.SCORE, shape=Shape.PERTURBED)
        entries.append(Entry(key=perturbed, head=str(len(heads))))  # never compared
    return TraceSet.of(entries)


def test_in_reverse_every_pair_is_turned_round() -> None:
    order, turned = SUITE.ids, in_reverse(SUITE).ids
    assert all(turned.index(first) > turned.index(second) for first, second in combinations(order, 2))
    assert in_reverse(SUITE).canary("b") == SUITE.canary("b")


def test_equal_traces_differ_nowhere() -> None:
    assert differing(traces(), traces()) == {}
    assert compared(traces()) == 6


def test_every_kind_of_difference_is_seen() -> None:
    assert differing(traces(), traces(b="other")) == {"b": (Probe.DECODE,)}
    assert differing(traces(), traces(b_layers="other")) == {"b": (Probe.DECODE,)}
    assert differing(traces(), traces(c="x", c_score="x")) == {"c": (Probe.DECODE, Probe.SCORE)}


def test_an_execution_that_one_side_lacks_is_a_difference() -> None:
    whole = traces()
    less = TraceSet.of(e for e in whole.entries if e.key.canary != "c")
    assert differing(whole, less) == {"c": (Probe.DECODE, Probe.SCORE)}
    unmeasured = TraceSet.of([Entry(key=TraceKey(canary="a", probe=Probe.DECODE), unmeasured="out of memory")])
    assert differing(unmeasured, unmeasured) == {}
    other = TraceSet.of([Entry(key=TraceKey(canary="a", probe=Probe.DECODE), unmeasured="a crash")])
    assert differing(unmeasured, other) == {"a": (Probe.DECODE,)}


def test_a_dependence_names_who_ran_before() -> None:
    found = dependences(SUITE, {"c": (Probe.SCORE,), "a": (Probe.DECODE, Probe.SCORE)}, {})
    assert [(one.canary, one.before) for one in found] == [("a", (None, "b")), ("c", ("b", None))]
    first, last = order_findings(found, "It remembers.")
    assert first.kind is FindingKind.ORDER_DEPENDENT
    assert first.canaries == ("a",)
    assert "'a' (decode and score)" in first.sentence
    assert "first of all they are others than after 'b' in the reversed suite" in first.sentence
    assert "after 'b' they are others than first of all" in last.sentence
    assert first.remedy.startswith("It remembers.")


def test_what_never_repeats_is_not_blamed_on_the_order() -> None:
    found = dependences(SUITE, {"a": (Probe.DECODE,), "b": (Probe.DECODE,)}, {"b": (Probe.DECODE,)})
    assert [one.repeats for one in found] == [True, False]
    assert [one.kind for one in order_findings(found, None)] == [
        FindingKind.ORDER_DEPENDENT,
        FindingKind.UNREPEATABLE,
    ]
