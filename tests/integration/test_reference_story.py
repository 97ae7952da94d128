"""The reference arm through the whole pipeline on the fake engine: bundle, beside, shared, absent, at the monitor."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from replaying import TARGET, Lab, run_here

from driftpin.cli.app import run
from driftpin.environment.environment import Section
from driftpin.errors import BlessError
from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.baselines import Baseline
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Arm, Probe, Shape
from driftpin.verdict.diagnosis import NOT_RUN, ChangeClass
from driftpin.workflow.assess import Assessment, assess, assess_replay
from driftpin.workflow.bless import SEEDS, bless, blessing_plan
from driftpin.workflow.bundled import AT_BLESSING, OTHER_WEIGHTS
from driftpin.workflow.refer import TURNED_OFF, Referred, beside, run_beside, worth_referring
from driftpin.workflow.references import of_baseline, of_replay, resolve
from runner.worker import run_replay

SHORT = CanarySettings(max_new_tokens=8)
SUITE = Suite(name="s", canaries=tuple(Canary(id=f"c{n}", prompt=f"Tell me {n}", settings=SHORT) for n in range(3)))
RECIPE = Recipe(engine="fake", model="f")
NOISE = {"faults": {"native_noise": {"by": 0.05}}}


@pytest.fixture
def lab(store: Store) -> Lab:
    return Lab(store=store, recipe=RECIPE, suite=SUITE, operations={"policy": Policy().to_json(), "text": "show"})


def blessed(lab: Lab, blessing: Replay | None = None, **words: Any) -> Baseline:
    done = blessing or lab.blessing()
    reference = run_beside(lab.store, done, done.trace_set or "", run_here(lab.store), SEEDS)
    return bless(lab.store, done, "tester", "a test", reference=reference, **words)


def judged(lab: Lab, replay: Replay, baseline: Baseline) -> Assessment:
    """As the command line does: judge, run the reference where it is worth it, judge again."""
    found = lab.judge(replay)
    if worth_referring(found):
        run_beside(lab.store, replay, baseline.trace_set, run_here(lab.store))
        found = lab.judge(replay)
    return found


def references(lab: Lab) -> list[Replay]:
    return [r for r in lab.store.replays.list(limit=100) if r.purpose == "reference"]


def test_a_blessing_keeps_both_floors_and_the_reference_scores(lab: Lab) -> None:
    bundle = lab.store.baselines.bundle(blessed(replace(lab, shapes=(Shape.ALONE, Shape.PADDED))))
    assert bundle["grade"] == "bitwise"
    assert (bundle["repeat_floor"]["repeats"], bundle["repeat_floor"]["logprob"]) == (3, 0.0)
    assert bundle["repeat_floor"]["shapes"]["padded"]["executions"] == 6  # three canaries, two probes
    kept = bundle["reference"]
    (made,) = references(lab)
    assert (made.plan.arm, made.plan.probes, made.plan.yardstick) == (Arm.REFERENCE, (Probe.SCORE,), SEEDS)
    assert (kept["replay"], made.beside) == (made.id, bundle_replay(lab))
    scores = lab.store.traces.set(kept["trace_set"])
    assert {e.key.probe for e in scores.entries} == {Probe.SCORE}
    assert 0 < kept["floors"]["logprob"] < bundle["floors"]["logprob"]  # the reference is the more exact arm


def bundle_replay(lab: Lab) -> str:
    return lab.store.baselines.list()[0].replay_id


def test_an_unchanged_replay_runs_no_reference(lab: Lab) -> None:
    baseline = blessed(lab)
    found = judged(lab, lab.run(), baseline)
    assert found.verdict.diagnosis is None
    assert len(references(lab)) == 1


def test_a_moved_replay_gets_one_reference_and_its_twin_shares_it(lab: Lab) -> None:
    baseline = blessed(lab)
    first, second = lab.run(options=NOISE), lab.run(options=NOISE)
    assert first.trace_set == second.trace_set
    for replay in (first, second):
        found = judged(lab, replay, baseline)
        assert found.verdict.diagnosis is not None
        assert found.verdict.diagnosis.word is ChangeClass.NATIVE_PATH_DEFECT
    mine = [r for r in references(lab) if r.beside == first.id]
    assert len(mine) == 1
    assert len(references(lab)) == 2
    assert found.reference is not None
    assert found.reference.replay == mine[0].id


def test_before_the_reference_ran_no_word_is_used(lab: Lab) -> None:
    blessed(lab)
    found = lab.judge(lab.run(options=NOISE))
    assert found.verdict.diagnosis is not None
    assert (found.verdict.diagnosis.word, found.verdict.diagnosis.absent) == (None, NOT_RUN)


def test_a_reference_that_fails_takes_the_word_and_nothing_else(lab: Lab) -> None:
    baseline = blessed(lab)
    replay = lab.run(options=NOISE)
    lab.judge(replay)

    def fails(queued: Replay) -> Replay:
        attempt = lab.store.replays.claim(queued.id)
        lab.store.replays.stop(queued.id, attempt or 0, ReplayStatus.FAILED, "it said: the secret output")
        return lab.store.replays.get(queued.id)

    referred = run_beside(lab.store, replay, baseline.trace_set, fails)
    assert referred.replay is None
    found = lab.judge(replay)
    assert found.verdict.kind.value == "drift"
    assert found.verdict.diagnosis is not None
    assert found.verdict.diagnosis.word is None
    assert "failed" in (found.verdict.diagnosis.absent or "")
    assert "secret" not in str(found.verdict)


def test_a_target_may_turn_the_reference_off(lab: Lab) -> None:
    off = replace(lab, operations={**lab.operations, "reference": "never"})
    done = off.blessing()
    referred = run_beside(off.store, done, done.trace_set or "", run_here(off.store), SEEDS)
    assert referred == Referred(absent=TURNED_OFF)
    baseline = bless(off.store, done, "tester", "a test", reference=referred)
    assert references(off) == []
    found = judged(off, off.run(options=NOISE), baseline)
    assert found.verdict.diagnosis is not None
    assert found.verdict.diagnosis.absent == AT_BLESSING


def test_a_baseline_blessed_without_one_says_so(lab: Lab) -> None:
    lab.bless()
    found = lab.judge(lab.run(options=NOISE))
    assert not worth_referring(found)
    assert found.verdict.diagnosis is not None
    assert "without a reference replay" in (found.verdict.diagnosis.absent or "")


def test_other_weights_under_the_reference_are_no_reference(lab: Lab) -> None:
    """Somebody replaced the file between the two runs of a blessing."""
    done = lab.blessing()
    other = lab.run(
        Plan(probes=(Probe.SCORE,), arm=Arm.REFERENCE, score_on=done.trace_set),
        options={"faults": {"weight": {"block": 0}}},
    )
    baseline = bless(lab.store, done, "tester", "a test", reference=Referred(replay=other))
    assert lab.store.baselines.bundle(baseline)["reference"] == {"absent": OTHER_WEIGHTS}


@pytest.mark.parametrize("only", [("new",), ()])
def test_new_canaries_join_the_reference_scores_that_are_kept(lab: Lab, only: tuple[str, ...]) -> None:
    """Also where the replay that is blessed ran every canary, on other tokens than those that are kept."""
    old = blessed(lab)
    added = Canary(id="new", prompt="Another one", settings=SHORT)
    wider = replace(lab, suite=Suite(name="s", canaries=(*SUITE.canaries, added)))
    moved = {} if only else {"options": {"faults": {"native_noise": {"by": 0.5}}}}
    joined = blessed(wider, wider.run(blessing_plan([Shape.ALONE], only=only), **moved), only_new=True)
    before, after = (lab.store.baselines.bundle(b)["reference"]["trace_set"] for b in (old, joined))
    kept, now = (lab.store.traces.set(digest).by_key() for digest in (before, after))
    assert {key.canary for key in now} == {"c0", "c1", "c2", "new"}
    assert all(now[key].head == entry.head for key, entry in kept.items())
    found = judged(wider, wider.run(options=NOISE), joined)
    assert found.reference is not None
    assert found.reference.missing == ()
    assert {d.key.canary for d in found.reference.distances} == {"c0", "c1", "c2", "new"}


def test_a_reference_replay_is_no_baseline_and_not_the_last_replay(lab: Lab) -> None:
    baseline = blessed(lab)
    (made,) = references(lab)
    with pytest.raises(BlessError, match="reference arm"):
        bless(lab.store, made, "tester", "a mistake")
    native = lab.store.replays.last("target", arm=Arm.NATIVE)
    assert native is not None
    assert native.id == baseline.replay_id


def test_the_reference_says_on_which_stack_it_ran(lab: Lab) -> None:
    baseline = blessed(lab)
    faults = {"faults": {"native_noise": {"by": 0.05}, "facts": {"stack": {"library.fake": "2"}}}}
    found = judged(lab, lab.run(options=faults), baseline)
    assert found.reference is not None
    assert found.reference.stack.value == "different"
    assert found.equalities is not None
    assert found.equalities[Section.STACK].value == "different"


def test_how_a_confirmation_ended_stays_with_its_replay(lab: Lab) -> None:
    baseline = blessed(lab)
    replay = lab.run(options=NOISE)
    assert assess_replay(lab.store, replay, Policy(), False).verdict.kind.value == "unstable"
    again = assess(lab.store, of_baseline(lab.store, baseline), of_replay(replay), Policy())
    assert (again.verdict.kind.value, again.reproduced) == ("unstable", False)
    other = blessed(lab)  # another baseline: what was repeated was not a change against it
    fresh = assess(lab.store, of_baseline(lab.store, other), of_replay(replay), Policy())
    assert fresh.reproduced is None


def test_the_last_replay_is_not_one_that_confirms_another(lab: Lab) -> None:
    blessed(lab)
    first = lab.run()
    lab.store.replays.create(
        lab.store.targets.get(first.revision_id),
        first.suite_digest,
        first.plan,
        host="h",
        device="d",
        purpose="confirm",
    )
    repeat = lab.store.replays.list(limit=1)[0]
    assert run_replay(lab.store, repeat.id) is ReplayStatus.FINISHED
    assert resolve(lab.store, "target@last").replay.id == first.id


def test_since_when_is_told_by_the_replays_before(lab: Lab) -> None:
    baseline = blessed(lab)
    good = lab.run()
    lab.judge(good)
    bad = [lab.run(options=NOISE) for _ in range(2)]
    told = [lab.judge(replay).since for replay in bad]
    assert [(s.last_good, s.first_bad) for s in told] == [(good.id, bad[0].id)] * 2
    lab.store.baselines.revert("target", baseline.device_class, "tester", "none", None)
    assert lab.judge(lab.run()).since.first_bad is None


def test_below_bitwise_a_replay_repeats_and_a_change_is_confirmed_by_its_verdict(lab: Lab) -> None:
    from driftpin.workflow.plans import replay_plan

    shaky = {"grade": "tokens", "quorum": {"k": 2, "n": 3}, "probes": ["decode", "score"]}
    below = replace(lab, operations={**lab.operations, **shaky})
    plan = replay_plan(below.operations)
    assert (plan.repeats, plan.score_on) == (3, BASELINE)
    baseline = blessed(below)
    found = judged(below, below.run(plan, options=NOISE), baseline)
    assert found.verdict.kind.value == "drift"
    assert all("3 of 3 repeats show it, 2 are needed" in c.findings[0].why for c in found.verdict.canaries)
    assert assess_replay(lab.store, found.candidate.replay, Policy(), True).verdict.kind.value == "drift"
    assert beside(lab.store, found.candidate.replay, baseline).replay is not None


def test_the_command_line_runs_it_and_says_the_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "driftpin.toml"
    assert run(["init", str(tmp_path)]) == 0
    assert run(["--config", str(config), "baseline", "bless", "try-me"]) == 0
    config.write_text(
        config.read_text().replace("# options =", "options = { faults = { native_noise = { by = 0.05 } } } #")
    )
    words = {}
    for flag in ("--no-reference", "--reference"):
        capsys.readouterr()
        assert run(["--config", str(config), "replay", "try-me", flag, "--format", "json"]) == 1
        body = json.loads(capsys.readouterr().out)
        words[flag] = body["class"], body["diagnosis"]["absent"]
    assert words == {"--no-reference": (None, NOT_RUN), "--reference": ("native_path_defect", None)}
    capsys.readouterr()
    assert run(["--config", str(config), "replay", "try-me"]) == 1
    screen = capsys.readouterr().out
    for label in ("shift", "class", "where", "because", "ruled out: ", "microprobes: ", "next"):
        assert label in screen
    assert "native path defect: the reference stayed calm" in screen


@pytest.mark.parametrize("reference", ["auto", "never"])
def test_a_dry_run_announces_references_only_where_a_baseline_could_answer(lab: Lab, reference: str) -> None:
    from driftpin.workflow.order import Order
    from driftpin.workflow.plans import dry, replay_plan

    operations = {**lab.operations, "probes": ["decode", "score"], "reference": reference}
    order = Order(target=TARGET, recipe=RECIPE, operations=operations, suite_name="s", suite=SUITE)

    def announced() -> Any:
        return dry(lab.store, order, replay_plan(operations))["reference_executions"]

    assert announced() == 0
    lab.bless()  # without reference scores
    assert announced() == 0
    blessed(lab)
    assert announced() == (0 if reference == "never" else len(SUITE.canaries))
