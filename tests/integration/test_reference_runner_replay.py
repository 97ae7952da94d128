"""Reference replays in a store: what an engine is told beforehand, and one trace set whichever way it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from replaying import Lab, kept_process_state

from driftpin.environment.reference import reference_label
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Arm, Probe, Shape
from runner.engines.fake import FakeEngine
from runner.engines.protocol import ScoreRequest
from runner.worker import run_replay

SETTINGS = CanarySettings(max_new_tokens=8)
SUITE = Suite(
    name="core",
    canaries=(
        Canary(id="one", prompt="2 + 2 =", settings=SETTINGS),
        Canary(id="bad", prompt="", settings=SETTINGS),
        Canary(id="two", prompt="Once upon a time", settings=SETTINGS),
    ),
)
SEEDS = 4


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


def fake(store: Store, **faults: Any) -> Lab:
    return Lab(store=store, recipe=Recipe(engine="fake", model="f", options={"faults": faults}), suite=SUITE)


def beside(native: Replay, **changes: Any) -> Plan:
    """The plan of a reference replay on the tokens of a native one."""
    plan = Plan(probes=(Probe.SCORE,), arm=Arm.REFERENCE, score_on=native.trace_set, yardstick=SEEDS)
    return replace(plan, **changes)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Everything that a fake engine is asked for, in order: the foreseen list, then each key."""
    events: list[Any] = []
    score, decode = FakeEngine.score, FakeEngine.decode

    def foresee(self: FakeEngine, requests: Sequence[ScoreRequest], told: object) -> None:
        events.append(list(requests))

    def scoring(self: FakeEngine, key: Any, canary: Any, rendered: Any, output_ids: Any) -> Any:
        events.append(ScoreRequest(key=key, canary=canary, rendered=rendered, output_ids=tuple(output_ids)))
        return score(self, key, canary, rendered, output_ids)

    def decoding(self: FakeEngine, key: Any, *rest: Any) -> Any:
        events.append(key)
        return decode(self, key, *rest)

    monkeypatch.setattr(FakeEngine, "foresee", foresee)
    monkeypatch.setattr(FakeEngine, "score", scoring)
    monkeypatch.setattr(FakeEngine, "decode", decoding)
    return events


def test_every_score_is_foreseen_once_behind_all_decodes(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events = watched(monkeypatch)
    fake(sqlite_store, unmeasured="two").run(Plan(repeats=2, shapes=(Shape.ALONE, Shape.FILLED), yardstick=SEEDS))
    at = next(n for n, event in enumerate(events) if isinstance(event, list))
    assert {key.probe for key in events[:at]} == {Probe.DECODE}
    # The canary without a prompt and the one whose decode failed have no tokens, so nothing will be asked of them.
    assert events[at] == events[at + 1 :]
    assert {request.key.canary for request in events[at]} == {"one"}
    assert len(events[at]) == 2 * 2 + SEEDS


def test_a_reference_replay_foresees_the_given_tokens(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = fake(sqlite_store)
    native = lab.run(Plan())
    events = watched(monkeypatch)
    lab.run(beside(native))
    assert events[0] == events[1:]
    assert [(r.key.canary, r.key.shape.value, r.key.repeat) for r in events[0]] == [
        ("one", "alone", 0),
        ("two", "alone", 0),
        *((canary, "perturbed", seed) for seed in range(SEEDS) for canary in ("one", "two")),
    ]
    assert {len(r.output_ids) for r in events[0]} <= set(range(1, 9))


def test_a_replay_without_scores_foresees_nothing(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events = watched(monkeypatch)
    fake(sqlite_store).run(Plan(probes=(Probe.DECODE,)))
    assert not [event for event in events if isinstance(event, list)]


def test_a_reference_that_is_asked_to_decode_measures_nothing(sqlite_store: Store) -> None:
    done = fake(sqlite_store).run(Plan(arm=Arm.REFERENCE))
    assert done.trace_set is not None
    entries = sqlite_store.traces.set(done.trace_set).entries
    assert not [entry for entry in entries if entry.head]
    assert "does not decode" in next(e.unmeasured or "" for e in entries if e.key.canary == "one")


def test_both_ways_leave_one_trace_set_and_say_which_they_were(sqlite_store: Store, llama_folder: Path) -> None:
    recipe = Recipe(engine="transformers", model="tiny", path=str(llama_folder), threads=1, dtype="bfloat16")
    lab = Lab(store=sqlite_store, recipe=recipe, suite=SUITE)
    native = lab.run(Plan())
    found = {way: lab.run(beside(native), options={"reference": way}) for way in ("whole", "block_by_block")}
    assert found["whole"].trace_set == found["block_by_block"].trace_set != native.trace_set
    for way, replay in found.items():
        assert replay.environment is not None
        environment = sqlite_store.environments.get(replay.environment, replay.context)
        assert environment.context["reference.way"] == way
        assert reference_label(environment) is None
    assert found["whole"].trace_set is not None
    heads = sqlite_store.traces.heads([e for e in sqlite_store.traces.set(found["whole"].trace_set).entries if e.head])
    assert {head.dtype for head in heads.values()} == {"float32"}
    assert len(heads) == 2 * (1 + SEEDS)


def test_block_by_block_says_how_far_it_is_before_the_first_score_is_there(
    sqlite_store: Store, llama_folder: Path
) -> None:
    recipe = Recipe(engine="transformers", model="tiny", path=str(llama_folder), threads=1)
    lab = Lab(store=sqlite_store, recipe=recipe, suite=SUITE)
    native = lab.run(Plan())
    steps: list[Any] = []

    def listen(event: str, **facts: Any) -> None:
        steps.append((facts["done"], facts["of"]) if event == "block" else event)

    queued = lab.queue(beside(native), options={"reference": "block_by_block"})
    assert run_replay(sqlite_store, queued.id, listen) is ReplayStatus.FINISHED
    blocks = [(n, 4) for n in (1, 2, 3, 4)]
    assert steps == ["loading", "planned", *blocks, *(["done"] * len(SUITE.canaries) * (1 + SEEDS)), "finished"]


def test_a_model_that_cannot_run_in_blocks_fails_the_replay_with_the_reason(
    sqlite_store: Store, llama_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from driftpin.errors import CannotMeasureError
    from runner.engines.blockwise import Blockwise
    from runner.engines.stubs import apart

    def refusing(self: Blockwise, make: Any) -> None:
        raise apart("a test says so")

    monkeypatch.setattr(Blockwise, "try_out", refusing)
    recipe = Recipe(engine="transformers", model="tiny", path=str(llama_folder), threads=1)
    lab = Lab(store=sqlite_store, recipe=recipe, suite=SUITE)
    native = lab.run(Plan())
    queued = lab.queue(beside(native), options={"reference": "block_by_block"})
    with pytest.raises(CannotMeasureError):
        run_replay(sqlite_store, queued.id)
    ended = sqlite_store.replays.get(queued.id)
    assert ended.status is ReplayStatus.FAILED
    assert "cannot be run apart: a test says so" in (ended.reason or "")


def test_the_reference_of_a_float32_target_on_the_plain_kernel_is_the_target_itself(
    sqlite_store: Store, llama_folder: Path
) -> None:
    recipe = Recipe(engine="transformers", model="tiny", path=str(llama_folder), threads=1, dtype="float32")
    lab = Lab(store=sqlite_store, recipe=recipe, suite=SUITE)
    native = lab.run(Plan())
    reference = lab.run(beside(native, yardstick=0))
    assert native.trace_set is not None
    assert reference.trace_set is not None
    both = [
        {e.key.canary: sqlite_store.traces.heads([e])[e.key].digest.tolist() for e in entries}
        for entries in (
            [e for e in sqlite_store.traces.set(digest).entries if e.head and e.key.probe is Probe.SCORE]
            for digest in (native.trace_set, reference.trace_set)
        )
    ]
    assert set(both[0]) == {"one", "two"}
    assert both[0] == both[1]
