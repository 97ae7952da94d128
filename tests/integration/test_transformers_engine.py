"""The transformers engine by its protocol, on tiny models: what a replay calls, and what it must refuse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from replaying import kept_process_state

from driftpin.errors import CannotMeasureError
from driftpin.settings.recipe import Recipe, Sampling
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite, input_digest
from driftpin.trace.head import Head
from driftpin.trace.health import ills
from driftpin.trace.layers import Layers
from driftpin.trace.probe import Arm, Greedy, Probe, Shape, TraceKey
from driftpin.trace.traceset import Trace
from runner.engines.caches import static_length
from runner.engines.registry import build
from runner.engines.transformers import TransformersEngine

SHORT = Canary(id="short", prompt="2 + 2 =", settings=CanarySettings(max_new_tokens=6))
CHAT = Canary(
    id="chat", messages=(Message(role="user", content="héllo 🙂"),), settings=CanarySettings(max_new_tokens=12)
)
LONG = Canary(id="long", prompt="tell me " * 20, settings=CanarySettings(max_new_tokens=30))
SUITE = Suite(name="tiny", canaries=(SHORT, CHAT, LONG))


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    """Loading an engine changes the process for good; a test session has to go on."""
    with kept_process_state():
        yield


def recipe(folder: Path, **changes: Any) -> Recipe:
    return replace(Recipe(engine="transformers", model="tiny", path=str(folder), threads=1), **changes)


def engine(folder: Path, arm: Arm = Arm.NATIVE, suite: Suite = SUITE, **changes: Any) -> TransformersEngine:
    made = build(recipe(folder, **changes), arm, suite)
    assert isinstance(made, TransformersEngine)
    made.load()
    return made


def decode(made: TransformersEngine, canary: Canary, shape: Shape = Shape.ALONE) -> Trace:
    key = TraceKey(canary=canary.id, probe=Probe.DECODE, shape=shape)
    return made.decode(key, canary, made.render(canary, None))


def score(made: TransformersEngine, canary: Canary, ids: list[int], shape: Shape = Shape.ALONE) -> Trace:
    key = TraceKey(canary=canary.id, probe=Probe.SCORE, shape=shape)
    return made.score(key, canary, made.render(canary, None), ids)


def test_a_replay_from_load_to_close(llama_folder: Path) -> None:
    made = engine(llama_folder, dtype="bfloat16")
    rendered = made.render(CHAT, None)
    made.warm_up()
    assert made.observer_check(CHAT, rendered) is None
    trace = decode(made, CHAT)
    head, layers = trace.head, trace.layers

    assert rendered.text == "<|im_start|>user\nhéllo 🙂<|im_end|>\n<|im_start|>assistant\n"
    assert head.prompt_ids.tolist() == list(rendered.ids)
    assert trace.input_digest == input_digest(rendered.ids, CHAT.settings)
    assert trace.text.rendered == rendered.text
    assert len(trace.text.pieces) == len(head.output_ids)
    assert (head.declared.probe, head.declared.arm, head.declared.token_limit) == (Probe.DECODE, Arm.NATIVE, 12)
    assert (head.declared.cache, head.declared.batch, head.declared.k) == ("DynamicCache", "rows=1", 20)
    assert head.dtype == "bfloat16"
    assert ills(head, layers) == ()
    assert layers is not None
    assert Head.from_bytes(head.to_bytes()).sha256 == head.sha256
    assert Layers.from_bytes(layers.to_bytes()).sha256 == layers.sha256

    scored = score(made, CHAT, head.output_ids.tolist())
    assert scored.head.output_ids.tolist() == head.output_ids.tolist()
    assert scored.text == trace.text
    made.close()
    with pytest.raises(RuntimeError, match="load"):
        made.render(CHAT, None)


@pytest.mark.parametrize("shape", list(Shape))
def test_two_engines_give_the_same_bytes(llama_folder: Path, shape: Shape) -> None:
    entries = []
    for _ in range(2):
        made = engine(llama_folder, dtype="bfloat16")
        made.warm_up()
        traces = [decode(made, canary, shape) for canary in SUITE.canaries]
        traces += [
            score(made, c, t.head.output_ids.tolist(), shape) for c, t in zip(SUITE.canaries, traces, strict=True)
        ]
        entries.append([trace.entry() for trace in traces])
    assert entries[0] == entries[1]


def test_the_environment_tells_what_is_loaded(llama_folder: Path) -> None:
    made = engine(llama_folder, dtype="bfloat16", generation={"repetition_penalty": 1.2})
    facts = made.environment(verify_weights=True)
    assert facts.model["sampling.mode"] == "clean"
    assert facts.model["sampling.in_force.repetition_penalty"] == "1.2"
    assert facts.stack["dtype"] == "bfloat16"
    made.warm_up()
    decode(made, LONG)
    assert made.environment().digests == facts.digests


def test_the_reference_arm_runs_in_float32(llama_folder: Path) -> None:
    made = engine(llama_folder, Arm.REFERENCE, dtype="bfloat16")
    trace = score(made, CHAT, [5, 6, 7])
    assert (trace.head.declared.arm, trace.head.dtype) == (Arm.REFERENCE, "float32")
    assert trace.layers is not None
    assert trace.layers.dtype == "float32"


def test_one_static_length_per_suite_whatever_ran_before(llama_folder: Path) -> None:
    fresh = decode(engine(llama_folder, cache="static"), SHORT)
    made = engine(llama_folder, cache="static")
    decode(made, LONG)
    decode(made, CHAT)
    after = decode(made, SHORT)
    assert after.entry() == fresh.entry()
    longest = len(made.render(LONG, None).ids) + 30
    assert after.head.declared.cache == f"StaticCache:{static_length(longest)}"
    assert decode(made, LONG, Shape.PADDED).head.declared.cache == after.head.declared.cache


@pytest.mark.parametrize(("longest", "length"), [(1, 64), (48, 64), (49, 128), (240, 256)])
def test_static_lengths_have_room_for_padding_and_are_round(longest: int, length: int) -> None:
    assert static_length(longest) == length


def test_a_penalty_in_the_file_acts_only_as_shipped(llama_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "penalised"
    shutil.copytree(llama_folder, folder)
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(config | {"repetition_penalty": 5.0}))
    plain = decode(engine(llama_folder), LONG)
    clean = decode(engine(folder), LONG)
    shipped = decode(engine(folder, sampling=Sampling.AS_SHIPPED), LONG)
    assert clean.entry() == plain.entry()
    assert shipped.head.output_ids.tolist() != clean.head.output_ids.tolist()
    assert set(shipped.head.greedy.tolist()) == {Greedy.PROVEN}


def test_an_operation_without_a_deterministic_version_is_refused_by_name(llama_folder: Path) -> None:
    def scatter(module: Any, inputs: Any, output: torch.Tensor) -> None:
        torch.zeros(4).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))

    made = engine(llama_folder)
    made._bench.model.model.layers[0].register_forward_hook(scatter)  # type: ignore[union-attr]
    with pytest.raises(CannotMeasureError, match="put_") as caught:
        decode(made, SHORT)
    assert 'nondeterministic_ops = "warn"' in str(caught.value)


def test_other_runtime_errors_stay_what_they_are(llama_folder: Path) -> None:
    made = engine(llama_folder)
    made._bench.model.model.layers[0].mlp.down_proj.weight.data = torch.zeros(3, 3)  # type: ignore[union-attr]
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        decode(made, SHORT)


def test_a_mixture_of_experts(mixture_folder: Path) -> None:
    made = engine(mixture_folder, dtype="bfloat16")
    trace = decode(made, CHAT, Shape.FILLED)
    assert trace.layers is not None
    assert len(trace.layers.expert_blocks) == 4
    assert made.observer_check(CHAT, made.render(CHAT, None)) is None


def test_filler_rows_avoid_special_tokens(llama_folder: Path) -> None:
    made = engine(llama_folder)
    assert made._bench is not None
    words = made._bench.vocabulary
    assert words.pad == 0
    assert set(words.ordinary) == set(range(3, 259))
    assert words.filler(1, 40) != words.filler(2, 40)
    assert words.filler(1, 40)[:10] == words.filler(1, 10)
