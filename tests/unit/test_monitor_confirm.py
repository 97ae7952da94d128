"""What a repeat must show again for a change to be confirmed."""

from __future__ import annotations

from dataclasses import replace

from driftpin.store.replay import Replay
from driftpin.trace.probe import Probe, TraceKey
from driftpin.trace.traceset import Entry, TraceSet
from driftpin.workflow.confirm import _Change

SEA, ONE = (TraceKey(canary=name, probe=Probe.DECODE) for name in ("sea", "one"))


class Repeat:
    """Only what is looked at."""

    model_digest = "m"


REPEAT: Replay = Repeat()  # type: ignore[assignment]


def entry(key: TraceKey, head: str, **parts: str) -> Entry:
    return Entry(key=key, input_digest="i", head=head, text="t", **parts)


def change(*entries: Entry, keys: tuple[TraceKey, ...] = (SEA,)) -> _Change:
    return _Change(traces=TraceSet.of(entries), model_digest="m", keys=keys)


def test_the_same_heads_of_what_changed_are_enough() -> None:
    seen = change(entry(SEA, "a"), entry(ONE, "b"))
    assert seen.shown_by(REPEAT, TraceSet.of([entry(SEA, "a", layers="x"), entry(ONE, "c")])) is True


def test_another_head_is_another_change() -> None:
    assert change(entry(SEA, "a")).shown_by(REPEAT, TraceSet.of([entry(SEA, "b")])) is False


def test_another_input_or_text_is_another_change() -> None:
    for other in (replace(entry(SEA, "a"), input_digest="j"), replace(entry(SEA, "a"), text="u")):
        assert change(entry(SEA, "a")).shown_by(REPEAT, TraceSet.of([other])) is False


def test_what_could_not_be_measured_again_proves_nothing() -> None:
    for traces in (TraceSet.of([Entry(key=SEA, unmeasured="too long")]), TraceSet.of([])):
        assert change(entry(SEA, "a")).shown_by(REPEAT, traces) is None


def test_what_was_never_measured_repeats_by_not_being_measured() -> None:
    missing = Entry(key=SEA, unmeasured="too long")
    assert change(missing).shown_by(REPEAT, TraceSet.of([missing])) is True
    assert change(missing).shown_by(REPEAT, TraceSet.of([entry(SEA, "a")])) is False


def test_where_only_the_model_changed_its_digest_must_show_again() -> None:
    traces = TraceSet.of([entry(SEA, "a")])
    assert replace(change(entry(SEA, "a"), keys=()), model_digest="m").shown_by(REPEAT, traces) is True
    assert replace(change(entry(SEA, "a"), keys=()), model_digest="n").shown_by(REPEAT, traces) is False
