"""One folder, one scenario: what is planted in scenario.toml must lead to the verdict written beside it.

Everything runs in this process on the fake engine: order, bless, replay, assess, shape. The tables of a scenario:
[base] and [candidate] (`faults` of the engine, `repeats`, `only`, `accept`, and the target's `grade`, `quorum` and
`reference`), [suite] (`remove`, `redefine` and `add` for the candidate; `keep`, `extra` and `checks` for both),
[assess] (`blessed`, `reproduced`, `refer`) and [expect], whose `why` holds words of a canary's findings. The reference
arm runs at blessing and wherever the command line would run it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from replaying import run_here

from driftpin.errors import DriftpinError
from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.canary import Suite
from driftpin.suite.load import suite_from_json
from driftpin.trace.health import Ill
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Shape
from driftpin.workflow import shapes
from driftpin.workflow.assess import Assessment, assess_replay
from driftpin.workflow.bless import SEEDS, bless, blessing_plan, refuse_unfit
from driftpin.workflow.order import Order, place
from driftpin.workflow.refer import run_beside, worth_referring
from runner.worker import run_replay

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent for path in HERE.glob("*/scenario.toml"))
TARGET = "scene"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One folder, read."""

    told: dict[str, Any]

    @classmethod
    def of(cls, folder: Path) -> Scene:
        return cls(told=tomllib.loads((folder / "scenario.toml").read_text("utf-8")))

    def table(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.told.get(name, {})
        return found

    def suites(self) -> tuple[Suite, Suite]:
        """Of baseline and candidate."""
        plain = tomllib.loads((HERE / "suite.toml").read_text("utf-8"))
        change = self.table("suite")
        plain["canaries"] = [c for c in plain["canaries"] if c["id"] in change.get("keep", [c["id"]])]
        plain["canaries"] += change.get("extra", [])
        redefined = {canary["id"]: canary for canary in change.get("redefine", ())}
        kept = [c for c in plain["canaries"] if c["id"] not in change.get("remove", ())]
        after = [redefined.get(c["id"], c) for c in kept] + change.get("add", [])
        for canary, checks in change.get("checks", {}).items():
            both = [c for c in (*plain["canaries"], *after) if c["id"] == canary]
            for one in both:
                one["checks"] = checks
        return suite_from_json(plain), suite_from_json(plain | {"canaries": after})


def play(store: Store, scene: Scene) -> Assessment:
    """Bless the base, replay the candidate, judge."""
    before, after = scene.suites()
    base, candidate, asked = scene.table("base"), scene.table("candidate"), scene.table("assess")
    if asked.get("blessed", True):
        blessing = run(store, before, blessing_plan([Shape.ALONE]), base)
        refuse_unfit(store, blessing, accept := [Ill(name) for name in base.get("accept", ())])
        reference = run_beside(store, blessing, blessing.trace_set or "", run_here(store), SEEDS)
        bless(store, blessing, "tester", "a scenario", accept=accept, reference=reference)
    plan = Plan(score_on=BASELINE, repeats=candidate.get("repeats", 1), only=tuple(candidate.get("only", ())))
    replay = run(store, after, plan, candidate)
    found = assess_replay(store, replay, Policy(), asked.get("reproduced"))
    if not worth_referring(found) or not asked.get("refer", True):
        return found
    baseline = store.baselines.get(store.replays.get(replay.id).baseline_id or 0)
    run_beside(store, replay, baseline.trace_set, run_here(store))
    return assess_replay(store, replay, Policy(), asked.get("reproduced"))


def run(store: Store, suite: Suite, plan: Plan, side: dict[str, Any]) -> Replay:
    recipe = Recipe(engine="fake", model="arithmetic", options={"faults": side.get("faults", {})})
    operations = {name: side[name] for name in ("grade", "quorum", "reference") if name in side}
    order = Order(target=TARGET, recipe=recipe, operations=operations, suite_name=suite.name, suite=suite)
    queued = place(store, order, plan, "manual")
    assert queued is not None
    assert run_replay(store, queued.id) is ReplayStatus.FINISHED
    return store.replays.get(queued.id)


def observed(found: Assessment) -> dict[str, Any]:
    """What a reader of the JSON is told, in the words of [expect]."""
    body = shapes.assessment(found, comparing=False)
    place_, first = body["localisation"], body["first_divergence"]
    return {
        "verdict": body["verdict"],
        "exit_code": body["exit_code"],
        "strict_exit_code": shapes.assessment(found, comparing=False, strict=True)["exit_code"],
        "severity": body["severity"],
        "headline": body["headline"],
        "outcomes": {canary: told["outcome"] for canary, told in body["outcomes"].items()},
        "first_divergence": None if first is None else f"{first['canary']}/{first['probe']}/{first['position']}",
        "place": None if place_ is None else place_["block"] or place_["sentence"],
        "next": [command.replace(found.candidate.replay.id, "REPLAY") for command in body["next"]],
        "unseen": body["unseen"],
        "class": body["class"],
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_the_scenario_ends_as_written(folder: Path, sqlite_store: Store) -> None:
    scene = Scene.of(folder)
    expect = scene.table("expect")
    if "error" in expect:
        with pytest.raises(DriftpinError, match=expect["error"]):
            play(sqlite_store, scene)
        return
    found = play(sqlite_store, scene)
    said = {c.canary: "; ".join(f.why for f in c.findings) for c in found.verdict.canaries}
    for canary, words in expect.pop("why", {}).items():
        assert words in said[canary]
    seen = observed(found)
    always = {
        "first_divergence": None,
        "place": None,
        "unseen": [],
        "class": None,
        "strict_exit_code": expect["exit_code"],
    }
    assert seen == always | expect
