"""Faults of real targets on tiny models, through worker, store and verdict: each is called by its own name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from replaying import Lab, kept_process_state, outcomes, rewritten, whys

from driftpin.environment.environment import Equality, Section
from driftpin.errors import BlessError, CannotMeasureError, ModelError
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import ReplayStatus
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.health import Ill
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Probe
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.assess import Assessment
from driftpin.workflow.bless import bless
from runner.engines.transformers import TransformersEngine
from runner.worker import run_replay

TOKENS = CanarySettings(max_new_tokens=10)
SUITE = Suite(
    name="faults",
    canaries=(
        Canary(id="chat", messages=(Message(role="user", content="héllo"),), settings=TOKENS),
        Canary(id="sum", prompt="2 + 2 =", settings=TOKENS),
    ),
)
DECODES = Plan(probes=(Probe.DECODE,), score_on=BASELINE)


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


def lab(store: Store, folder: Path, suite: Suite = SUITE, **changes: Any) -> Lab:
    recipe = Recipe(engine="transformers", model="tiny", path=str(folder), threads=1, **changes)
    return Lab(store=store, recipe=recipe, suite=suite)


def with_tokenizer(source: Path, target: Path, change: Any) -> Path:
    shutil.copytree(source, target)
    tokenizer = json.loads((target / "tokenizer.json").read_text("utf-8"))
    change(tokenizer["model"]["vocab"])
    (target / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    return target


def equality(found: Assessment, section: Section) -> Equality:
    assert found.equalities is not None
    return found.equalities[section]


def test_missing_weights_fail_the_replay_with_the_sentence(
    sqlite_store: Store, llama_folder: Path, tmp_path: Path
) -> None:
    key = "model.layers.1.mlp.up_proj.weight"
    folder = rewritten(llama_folder, tmp_path / "gap", lambda tensors: tensors.pop(key))
    queued = lab(sqlite_store, folder).queue()
    with pytest.raises(ModelError, match=key):
        run_replay(sqlite_store, queued.id)
    failed = sqlite_store.replays.get(queued.id)
    assert failed.status is ReplayStatus.FAILED
    assert failed.reason is not None
    assert f"lack {key}. transformers would fill them with random numbers." in failed.reason
    assert failed.verdict is None


def test_a_nan_is_broken_in_its_first_block_and_cannot_be_blessed(
    sqlite_store: Store, llama_folder: Path, tmp_path: Path
) -> None:
    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.layers.2.mlp.down_proj.weight"][5, 7] = float("nan")

    folder = rewritten(llama_folder, tmp_path / "nan", spoil)
    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(path=str(folder))
    assert found.verdict.kind is VerdictKind.BROKEN
    assert set(outcomes(found).values()) == {"broken"}
    assert "non-finite from block model.layers.2 at position 0" in whys(found)
    with pytest.raises(BlessError, match=r"nonfinite.*cannot be watched"):
        made.bless(path=str(folder))


def test_one_token_for_ever_is_broken_refused_and_can_be_accepted(
    sqlite_store: Store, llama_folder: Path, tmp_path: Path
) -> None:
    def flatten(tensors: dict[str, torch.Tensor]) -> None:
        tensors["lm_head.weight"][:] = 0.0

    folder = rewritten(llama_folder, tmp_path / "flat", flatten)
    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(path=str(folder))
    assert found.verdict.kind is VerdictKind.BROKEN
    assert "one token, 10 times" in whys(found)

    flat = lab(sqlite_store, folder)
    replay = flat.blessing()
    with pytest.raises(BlessError, match="--accept one_token"):
        bless(sqlite_store, replay, "tester", "a test")
    bless(sqlite_store, replay, "tester", "a test", accept=[Ill.ONE_TOKEN])
    assert flat.assess().verdict.kind is VerdictKind.MATCH


def test_another_tokenizer_is_a_changed_input_not_a_changed_answer(
    sqlite_store: Store, llama_folder: Path, tmp_path: Path
) -> None:
    def swap(vocabulary: dict[str, int]) -> None:
        vocabulary["l"], vocabulary["2"] = vocabulary["2"], vocabulary["l"]

    folder = with_tokenizer(llama_folder, tmp_path / "swapped", swap)
    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(path=str(folder))
    assert found.verdict.kind is VerdictKind.INCOMPARABLE
    assert outcomes(found) == {"chat": "input_changed", "sum": "input_changed"}
    assert "prompt ids changed at index" in whys(found)
    assert found.verdict.first is None
    assert found.verdict.place is not None
    assert "the input changed" in found.verdict.place.sentence
    assert {fact.name.split(".")[0] for fact in found.differences} == {"tokenizer"}


def test_a_tokenizer_that_touches_one_canary_spares_the_other(
    sqlite_store: Store, llama_folder: Path, tmp_path: Path
) -> None:
    def swap(vocabulary: dict[str, int]) -> None:
        vocabulary["2"], vocabulary["9"] = vocabulary["9"], vocabulary["2"]

    folder = with_tokenizer(llama_folder, tmp_path / "digits", swap)
    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(path=str(folder))
    assert outcomes(found)["sum"] == "input_changed"
    assert outcomes(found)["chat"] not in {"flip", "shifted", "broken", "input_changed"}


def test_another_precision_is_another_stack(sqlite_store: Store, llama_folder: Path) -> None:
    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(dtype="bfloat16")
    assert found.verdict.kind is VerdictKind.DRIFT
    assert equality(found, Section.STACK) is Equality.DIFFERENT
    assert equality(found, Section.BEHAVIOUR) is Equality.DIFFERENT
    names = [fact.name for fact in found.differences]
    assert next(fact.name for fact in found.differences if fact.section is Section.STACK) == "dtype"
    assert not [name for name in names if name.startswith("weights")]  # the files are the same
    assert found.verdict.place is not None
    assert not found.verdict.place.found


def test_a_static_cache_is_another_stack_and_its_rounding_is_judged(sqlite_store: Store, llama_folder: Path) -> None:
    """A score uses no cache and is equal; a decode may round otherwise, which is no change of the model."""
    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(cache="static")
    assert equality(found, Section.STACK) is Equality.DIFFERENT
    assert [fact.name for fact in found.differences if fact.name.startswith("cache")] == ["cache.class"]
    assert found.comparison is not None
    assert not found.comparison.unmeasured
    assert not any(trace.mismatched for trace in found.comparison.changed)
    assert found.verdict.kind in (VerdictKind.MATCH, VerdictKind.NUMERIC)  # float32: no token parts


def test_a_mixture_of_experts_runs_the_whole_pipeline(
    sqlite_store: Store, mixture_folder: Path, tmp_path: Path
) -> None:
    def damage(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.layers.1.self_attn.o_proj.weight"][:16] = 0.0

    made = lab(sqlite_store, mixture_folder)
    blessed = made.bless()
    layers = [sqlite_store.traces.layers(e) for e in sqlite_store.replays.trace_set(blessed).entries]
    assert all(one is not None and one.experts.shape[0] == 4 for one in layers)
    assert made.assess().verdict.kind is VerdictKind.MATCH
    found = made.assess(path=str(rewritten(mixture_folder, tmp_path / "damaged", damage)))
    assert found.verdict.kind is VerdictKind.DRIFT
    assert found.verdict.place is not None
    assert found.verdict.place.block == "model.layers.1"


def test_a_steering_variable_is_another_stack_and_its_fact_comes_first(
    sqlite_store: Store, llama_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab(sqlite_store, llama_folder)
    made.bless()
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")  # of no effect on a CPU, but nobody can know that of every one
    found = made.assess()
    assert equality(found, Section.STACK) is Equality.DIFFERENT
    assert equality(found, Section.MODEL) is not Equality.DIFFERENT
    assert (found.differences[0].name, found.differences[0].after) == ("variable.NVIDIA_TF32_OVERRIDE", "0")
    assert found.verdict.kind is VerdictKind.MATCH


def test_a_variable_that_steers_nothing_is_no_difference(
    sqlite_store: Store, llama_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab(sqlite_store, llama_folder)
    made.bless()
    monkeypatch.setenv("EDITOR", "ed")
    found = made.assess()
    assert found.verdict.kind is VerdictKind.MATCH
    assert not [fact for fact in found.differences if fact.kind.value != "undetermined"]


def test_a_canary_that_cannot_be_measured_loses_nothing_but_itself(
    sqlite_store: Store, llama_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab(sqlite_store, llama_folder)
    made.bless()
    decode = TransformersEngine.decode

    def refuse(self: TransformersEngine, key: Any, canary: Canary, rendered: Any) -> Any:
        if canary.id == "chat":
            raise CannotMeasureError("The device ran out of memory.", remedy="Free it.")
        return decode(self, key, canary, rendered)

    monkeypatch.setattr(TransformersEngine, "decode", refuse)
    found = made.assess()
    assert found.verdict.kind is VerdictKind.INCOMPLETE
    assert outcomes(found) == {"chat": "unmeasured", "sum": "identical"}
    assert "The device ran out of memory. Free it." in whys(found)
    assert "Not measured: chat." in found.verdict.unseen


def test_a_suite_with_an_empty_prompt_is_measured_but_not_blessed(sqlite_store: Store, llama_folder: Path) -> None:
    suite = Suite(name="gap", canaries=(Canary(id="nothing", prompt=""), *SUITE.canaries))
    made = lab(sqlite_store, llama_folder, suite)
    done = made.blessing()
    gaps = {e.key.canary for e in sqlite_store.replays.trace_set(done).entries if e.unmeasured}
    assert gaps == {"nothing"}
    with pytest.raises(BlessError, match="nothing has no tokens"):
        bless(sqlite_store, done, "tester", "a test")


def test_damage_is_reported_beside_a_canary_that_cannot_be_measured(
    sqlite_store: Store, llama_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def damage(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.layers.3.self_attn.o_proj.weight"][:] = 0.0

    made = lab(sqlite_store, llama_folder)
    made.bless()
    render = TransformersEngine.render

    def refuse(self: TransformersEngine, canary: Canary, clock: str | None) -> Any:
        if canary.id == "chat":
            raise CannotMeasureError("No template.")
        return render(self, canary, clock)

    monkeypatch.setattr(TransformersEngine, "render", refuse)
    found = made.assess(path=str(rewritten(llama_folder, tmp_path / "damaged", damage)))
    assert found.verdict.kind is VerdictKind.DRIFT
    assert outcomes(found)["chat"] == "unmeasured"
    assert found.verdict.place is not None
    assert found.verdict.place.block == "model.layers.3"


def test_a_blessing_reads_weight_files_in_full_and_a_replay_trusts_the_cache(
    sqlite_store: Store, llama_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    environment = TransformersEngine.environment

    def listen(self: TransformersEngine, *, verify_weights: bool = False) -> Any:
        asked.append(verify_weights)
        return environment(self, verify_weights=verify_weights)

    monkeypatch.setattr(TransformersEngine, "environment", listen)
    made = lab(sqlite_store, llama_folder)
    made.bless()
    made.run()
    assert asked == [True, False]


@pytest.mark.parametrize(
    ("name", "block", "index"),
    [
        ("model.embed_tokens.weight", "model.layers.0", 0),
        ("model.layers.0.input_layernorm.weight", "model.layers.0", 0),
        ("model.layers.2.self_attn.q_proj.weight", "model.layers.2", 2),
        ("model.layers.3.mlp.down_proj.weight", "model.layers.3", 3),
        ("model.norm.weight", None, None),  # behind the last block
    ],
)
def test_a_scaled_tensor_is_drift_and_names_its_block(
    sqlite_store: Store, llama_folder: Path, tmp_path: Path, name: str, block: str | None, index: int | None
) -> None:
    def scale(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name] *= 1.001

    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(path=str(rewritten(llama_folder, tmp_path / "scaled", scale)))
    assert found.verdict.kind is VerdictKind.DRIFT
    assert found.verdict.place is not None
    assert found.verdict.place.found
    assert (found.verdict.place.block, found.verdict.place.index) == (block, index)
    part = name.removesuffix(".weight") if ".layers." not in name else block
    assert [fact.name for fact in found.differences] == [
        "weights.model.safetensors",
        f"parameters.{part}",
        "parameters.total",
    ]


def test_a_changed_number_in_the_configuration_is_drift_without_a_changed_weight(
    sqlite_store: Store, llama_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "epsilon"
    shutil.copytree(llama_folder, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 1e-3}), "utf-8")
    made = lab(sqlite_store, llama_folder)
    made.bless()
    found = made.assess(path=str(folder))
    assert found.verdict.kind is VerdictKind.DRIFT
    assert [fact.name for fact in found.differences] == ["config.file"]


def test_a_truncated_file_fails_the_replay_by_name(sqlite_store: Store, llama_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "short"
    shutil.copytree(llama_folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-64])
    queued = lab(sqlite_store, folder).queue()
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read"):
        run_replay(sqlite_store, queued.id)
    assert sqlite_store.replays.get(queued.id).status is ReplayStatus.FAILED


def test_an_interrupted_replay_keeps_what_it_recorded(
    sqlite_store: Store, llama_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = TransformersEngine.decode

    def stop(self: TransformersEngine, key: Any, canary: Canary, rendered: Any) -> Any:
        if canary.id == "sum":
            raise KeyboardInterrupt
        return decode(self, key, canary, rendered)

    monkeypatch.setattr(TransformersEngine, "decode", stop)
    queued = lab(sqlite_store, llama_folder).queue()
    assert run_replay(sqlite_store, queued.id) is ReplayStatus.INTERRUPTED
    ended = sqlite_store.replays.get(queued.id)
    assert (ended.status, ended.reason) == (ReplayStatus.INTERRUPTED, "interrupted in mid-replay")
    assert [e.key.canary for e in sqlite_store.replays.trace_set(ended).entries] == ["chat"]
    with pytest.raises(BlessError, match="interrupted"):
        bless(sqlite_store, ended, "tester", "a test")
