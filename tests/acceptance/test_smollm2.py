"""The real SmolLM2-135M in bfloat16, in real child processes: bless, replay, and one real change after another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from replaying import Lab, outcomes, rows

from driftpin.environment.environment import Equality, Section
from driftpin.settings.recipe import Recipe, Sampling
from driftpin.store import Store
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.probe import Probe, Shape
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import Outcome
from driftpin.workflow.assess import Assessment
from driftpin.workflow.bless import SEEDS

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

BLOCK = "model.layers.14"
TENSOR = f"{BLOCK}.mlp.down_proj.weight"
SUITE = Suite(
    name="acceptance",
    canaries=(
        Canary(
            id="capital",
            messages=(Message(role="user", content="What is the capital of France?"),),
            settings=CanarySettings(max_new_tokens=8),
        ),
        Canary(id="count", prompt="one, two, three, four,", settings=CanarySettings(max_new_tokens=6)),
        Canary(
            id="repeat",
            messages=(Message(role="user", content="Say the word tea three times: tea tea"),),
            settings=CanarySettings(max_new_tokens=8),
        ),
    ),
)


@pytest.fixture(scope="module")
def model() -> Path:
    """The demonstration weights; where their package is missing, its own sentence is the failure."""
    from runner.demo_weights import ensure_smollm2

    return ensure_smollm2("bfloat16")


@pytest.fixture(scope="module")
def lab(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A blessed target in a SQLite store: three repeats, alone and padded."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'driftpin.db'}"
    recipe = Recipe(engine="transformers", model="smollm2", path=str(model), dtype="bfloat16")
    with Store.open(url, migrate=True) as store:
        made = Lab(
            store=store,
            url=url,
            suite=SUITE,
            shapes=(Shape.ALONE, Shape.PADDED),
            recipe=replace(recipe, sampling=Sampling.AS_SHIPPED),
        )
        made.bless()
        yield made


def facts(found: Assessment) -> list[str]:
    return [fact.name for fact in found.differences]


def test_the_baseline_holds_every_execution_of_every_canary(lab: Lab) -> None:
    baseline = lab.store.baselines.list("target")[0]
    traces = lab.store.traces.set(baseline.trace_set)
    # Two probes in two shapes, three times; and the seeds of the rounding yardstick.
    assert len(traces.entries) == len(SUITE.canaries) * (2 * 2 * 3 + SEEDS)
    assert not [entry for entry in traces.entries if entry.unmeasured or entry.ills or entry.layers_absent]
    assert {entry.key.shape for entry in traces.entries} == {Shape.ALONE, Shape.PADDED, Shape.PERTURBED}
    floors = lab.store.baselines.bundle(baseline)["floors"]
    # 2^-7 is bfloat16's epsilon: rounding moves the logits of this model by some of it, never by whole units.
    assert 0 < floors["pair"] < 4
    assert len(floors["blocks"]) == 30
    capital = next(e for e in traces.entries if e.key.canary == "capital" and e.key.probe is Probe.DECODE)
    assert "Paris" in lab.store.traces.text(capital).output


def test_an_unchanged_replay_matches_and_adds_one_row(lab: Lab) -> None:
    before = rows(lab.store)
    found = lab.assess()
    assert found.verdict.kind is VerdictKind.MATCH, found.verdict.headline
    assert found.equalities is not None
    assert Equality.DIFFERENT not in found.equalities.values()
    assert set(outcomes(found).values()) == {"identical"}
    after = rows(lab.store)
    assert {table: after[table] - before[table] for table in after if after[table] != before[table]} == {"replays": 1}


def test_eager_attention_is_a_change_of_the_stack(lab: Lab) -> None:
    found = lab.assess(attention="eager")
    assert found.verdict.kind in {VerdictKind.DRIFT, VerdictKind.NUMERIC}
    assert found.equalities is not None
    assert found.equalities[Section.MODEL] is not Equality.DIFFERENT
    assert found.equalities[Section.STACK] is Equality.DIFFERENT
    assert facts(found)[0].startswith("attention")
    assert set(outcomes(found).values()) <= {Outcome.FLIP, Outcome.TIE_FLIP, Outcome.NUMERIC, Outcome.IDENTICAL}
    assert set(outcomes(found).values()) != {Outcome.IDENTICAL}
    assert found.verdict.place is not None
    assert not found.verdict.place.found  # every block rounds differently: nothing may be accused


def test_a_damaged_tensor_is_drift_of_the_model_in_its_block(lab: Lab, model: Path, tmp_path: Path) -> None:
    found = lab.assess(path=str(planted(model, tmp_path, "damage", "--tensor", TENSOR)))
    assert found.verdict.kind is VerdictKind.DRIFT
    assert found.equalities is not None
    assert found.equalities[Section.MODEL] is Equality.DIFFERENT
    assert found.equalities[Section.STACK] is not Equality.DIFFERENT
    assert found.verdict.place is not None
    assert (found.verdict.place.block, found.verdict.place.index) == (BLOCK, 14)
    assert facts(found)[0] == "weights.model.safetensors"


def test_a_penalty_left_in_the_file_is_drift_with_the_file_as_its_fact(lab: Lab, model: Path, tmp_path: Path) -> None:
    found = lab.assess(path=str(planted(model, tmp_path, "penalty", "--value", "1.3")))
    assert found.verdict.kind is VerdictKind.DRIFT
    assert "generation.file" in facts(found)
    assert not [name for name in facts(found) if name.startswith("weights")]
    assert "flip" in outcomes(found).values()


def planted(model: Path, folder: Path, *change: str) -> Path:
    """Made in a process of its own: this one need not load torch for it."""
    target = folder / "model"
    subprocess.run([sys.executable, "-m", "runner.planting", str(model), str(target), *change], check=True)
    return target
