"""Whole replays in the pair: load, render, decode, score, yardstick, environment, blessing, an unchanged replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers
from pair_suite import SUITE, recipe
from replaying import Lab, outcomes

from driftpin.environment.environment import Equality
from driftpin.store import Store
from driftpin.trace.probe import Greedy, Probe, Shape
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.bless import SEEDS


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, llama_folder: Path) -> Iterator[Lab]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'driftpin.db'}"
    with Store.open(url, migrate=True) as store:
        made = Lab(store=store, suite=SUITE, shapes=(Shape.ALONE, Shape.PADDED), recipe=recipe(llama_folder))
        made.bless()
        yield made


def test_the_pair_is_what_its_lock_says(lab: Lab, pair_transformers: str, pair_tokenizers: str) -> None:
    assert transformers.__version__ == pair_transformers
    replay = lab.store.replays.get(lab.store.baselines.list("target")[0].replay_id)
    assert replay.environment is not None
    stack = lab.store.environments.get(replay.environment).stack
    assert stack["library.transformers"] == pair_transformers
    assert stack["library.tokenizers"] == pair_tokenizers
    number, _, local = torch.__version__.partition("+")  # a distribution's own version may lack the local part
    assert str(stack["library.torch"]).partition("+")[0] == number
    assert stack["library.torch.local"] == local


def test_the_baseline_holds_every_execution_of_every_canary(lab: Lab) -> None:
    baseline = lab.store.baselines.list("target")[0]
    traces = lab.store.traces.set(baseline.trace_set)
    assert len(traces.entries) == len(SUITE.canaries) * (2 * 2 * 3 + SEEDS)
    assert not [entry for entry in traces.entries if entry.unmeasured or entry.ills or entry.layers_absent]
    decodes = [entry for entry in traces.entries if entry.key.probe is Probe.DECODE]
    heads = lab.store.traces.heads(decodes).values()
    assert {int(word) for head in heads for word in head.greedy} == {Greedy.PROVEN}
    floors = lab.store.baselines.bundle(baseline)["floors"]
    assert floors["pair"] > 0
    assert list(floors["blocks"]) == [f"model.layers.{index}" for index in range(4)]


def test_an_unchanged_replay_matches(lab: Lab) -> None:
    found = lab.assess()
    assert found.verdict.kind is VerdictKind.MATCH, found.verdict.headline
    assert found.equalities is not None
    assert Equality.DIFFERENT not in found.equalities.values()
    assert set(outcomes(found).values()) == {"identical"}
