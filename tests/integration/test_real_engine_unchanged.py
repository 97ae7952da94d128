"""Nothing changed: a real engine repeats itself, twenty times in one process and in fresh processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from replaying import REPLAY, Lab, kept_process_state, outcomes, rewritten, rows

from driftpin.environment.environment import Equality, Section
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import ReplayStatus
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.probe import DECLARABLE, Probe
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.launch import launch

UNCHANGED = 20
CHAT = Canary(id="chat", messages=(Message(role="user", content="héllo"),), settings=CanarySettings(max_new_tokens=10))
SUITE = Suite(name="one", canaries=(CHAT,))


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


@pytest.fixture(scope="module")
def recipe(llama_folder: Path) -> Recipe:
    return Recipe(engine="transformers", model="tiny", path=str(llama_folder), dtype="bfloat16", threads=1)


@pytest.fixture(scope="module")
def children(recipe: Recipe, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A blessed target whose replays run in child processes."""
    url = f"sqlite:///{shutil.copy(sqlite_template, tmp_path_factory.mktemp('children') / 'store.db')}"
    with Store.open(url) as store:
        made = Lab(store=store, url=url, recipe=recipe, suite=SUITE, shapes=DECLARABLE)
        made.bless()
        yield made


def test_twenty_replays_in_one_process_match_and_add_a_row_each(sqlite_store: Store, recipe: Recipe) -> None:
    lab = Lab(store=sqlite_store, recipe=recipe, suite=SUITE)
    lab.bless()
    before = rows(lab.store)
    found = [lab.assess() for _ in range(UNCHANGED)]
    assert {one.verdict.kind for one in found} == {VerdictKind.MATCH}
    assert len({one.candidate.trace_set for one in found}) == 1
    assert len({tuple(one.candidate.replay.digests.values()) for one in found}) == 1
    after = rows(lab.store)
    grown = {table: after[table] - before[table] for table in after if after[table] != before[table]}
    assert grown.pop("replays") == UNCHANGED
    assert sum(grown.values()) <= 2  # the first one's own manifest and context, never one per replay


def test_fresh_processes_repeat_each_other_in_every_shape(children: Lab) -> None:
    found = [children.assess(replace(REPLAY, shapes=DECLARABLE)) for _ in range(3)]
    assert {one.verdict.kind for one in found} == {VerdictKind.MATCH}
    assert {len(one.comparison.identical) for one in found if one.comparison} == {len(Probe) * len(DECLARABLE)}
    for one in found:
        assert one.equalities is not None
        assert Equality.DIFFERENT not in one.equalities.values()


def test_a_variable_is_seen_in_the_child(children: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_SCHEDULE", "static,1")
    found = children.assess()
    assert found.equalities is not None
    assert found.equalities[Section.STACK] is Equality.DIFFERENT
    assert found.equalities[Section.MODEL] is not Equality.DIFFERENT
    first = found.differences[0]
    assert (first.name, first.before, first.after) == ("variable.OMP_SCHEDULE", None, "static,1")
    assert found.verdict.kind is VerdictKind.MATCH
    assert outcomes(found) == {"chat": "identical"}


def test_a_child_that_refuses_its_model_says_why(children: Lab, llama_folder: Path, tmp_path: Path) -> None:
    assert children.url is not None
    key = "model.layers.0.self_attn.q_proj.weight"
    folder = rewritten(llama_folder, tmp_path / "gap", lambda tensors: tensors.pop(key))
    events: list[str] = []
    queued = children.queue(path=str(folder))
    done = launch(children.store, children.url, queued, lambda event: events.append(event["event"]))
    assert done.status is ReplayStatus.FAILED
    assert done.reason is not None
    assert f"lack {key}" in done.reason
    assert events == ["loading", "failed"]
