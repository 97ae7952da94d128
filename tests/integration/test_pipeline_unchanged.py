"""Five hundred unchanged replays in one process: each is a match, none adds more than its own row."""

from __future__ import annotations

from replaying import Lab, rows

from driftpin.settings.policy import Severity
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.probe import Shape
from driftpin.workflow.confirm import worth_confirming

REPLAYS = 500
LOOKS = (1, 2, 3, 100)  # counting every row takes longer than a replay
SUITE = Suite(
    name="unchanged",
    canaries=(
        Canary(
            id="chat", messages=(Message(role="user", content="Hi é\0"),), settings=CanarySettings(max_new_tokens=6)
        ),
        Canary(id="raw", prompt="1 2 3", settings=CanarySettings(max_new_tokens=4)),
    ),
)


def test_unchanged_replays_match_and_add_exactly_their_own_row(sqlite_store: Store) -> None:
    lab = Lab(
        store=sqlite_store,
        recipe=Recipe(engine="fake", model="arithmetic"),
        suite=SUITE,
        shapes=(Shape.ALONE, Shape.FILLED),
    )
    lab.bless()
    before = rows(sqlite_store)
    verdicts, severities, traces = set(), set(), set()
    for n in range(1, REPLAYS + 1):
        found = lab.assess()
        if n in LOOKS or n == REPLAYS:
            assert rows(sqlite_store) == before | {"replays": before["replays"] + n}
        verdicts.add(found.verdict.kind.value)
        severities.add(found.verdict.severity)
        traces.add(found.candidate.trace_set)
        assert not worth_confirming(found.verdict)
    assert (verdicts, severities) == ({"match"}, {Severity.NONE})
    assert len(traces) == 1
    assert rows(sqlite_store)["incidents"] == 0
