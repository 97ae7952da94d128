"""Recording in the pair: blocks, hooks, experts, caches, number formats, and that the observer disturbs nothing."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pair_suite import CHAT, LONG, SHORT, decode, engine, score

from driftpin.trace import digest as reference
from driftpin.trace.layers import Layers
from driftpin.trace.probe import Arm, Shape
from driftpin.trace.traceset import Trace
from runner.engines.caches import cache_arguments
from runner.engines.compiling import uncompiled

BLOCKS = tuple(f"model.layers.{index}" for index in range(4))


def layers_of(trace: Trace) -> Layers:
    assert trace.layers is not None, trace.layers_absent
    return trace.layers


@pytest.mark.parametrize("shape", [Shape.ALONE, Shape.PADDED])
def test_every_block_is_recorded_in_both_probes(llama_folder: Path, shape: Shape) -> None:
    made = engine(llama_folder)
    hooks = count_hooks(made)
    trace = decode(made, CHAT, shape)
    scored = score(made, CHAT, trace.head.output_ids.tolist(), shape)
    assert layers_of(trace).blocks == layers_of(scored).blocks == BLOCKS
    assert layers_of(trace).cells.shape == (4, len(trace.head.output_ids))
    assert layers_of(scored).cells.shape == (4, len(trace.head.prompt_ids) + len(trace.head.output_ids) - 1)
    assert len(set(trace.head.output_ids.tolist())) > 5  # no trivial case
    assert count_hooks(made) == hooks


def test_a_score_computes_the_logits_of_the_scored_positions_only(llama_folder: Path) -> None:
    made, rows = engine(llama_folder), []
    head = made._bench.model.lm_head  # type: ignore[union-attr]
    head.register_forward_hook(lambda module, inputs, output: rows.append(output.shape[1]))
    score(made, CHAT, [5, 6, 7])
    assert rows == [3]


def count_hooks(made: Any) -> int:
    return sum(len(module._forward_hooks) for module in made._bench.model.modules())


@pytest.mark.parametrize("folder", ["llama_folder", "mixture_folder"])
def test_the_observer_disturbs_nothing(request: pytest.FixtureRequest, folder: str) -> None:
    made = engine(request.getfixturevalue(folder))
    assert made.observer_check(CHAT, made.render(CHAT, None)) is None


def test_experts_are_the_choice_of_each_router(mixture_folder: Path) -> None:
    """Version 4 gives the router's logits out of the block, version 5 the chosen ids into the experts."""
    made = engine(mixture_folder)
    chosen: list[np.ndarray] = []

    def watch(module: Any, inputs: Any, output: Any) -> None:
        logits = output[0] if isinstance(output, tuple) else output
        order = np.argsort(-logits.float().numpy(), axis=-1, kind="stable")[:, :2]
        chosen.append(order[-1])

    gates = [m for name, m in made._bench.model.named_modules() if name.endswith(".gate")]  # type: ignore[union-attr]
    handles = [gate.register_forward_hook(watch) for gate in gates]
    trace = decode(made, CHAT)
    for handle in handles:
        handle.remove()
    layers, steps = layers_of(trace), len(trace.head.output_ids)
    assert len(gates) == len(layers.expert_blocks) == 4
    assert [path.rpartition(".")[0] for path in layers.expert_blocks] == list(BLOCKS)
    for lane in range(4):
        assert layers.experts[lane].tolist() == [code(chosen[step * 4 + lane]) for step in range(steps)]
    assert len(set(layers.experts.reshape(-1).tolist())) > 1


def code(experts: np.ndarray) -> int:
    total = sum(int(w) * (int(e) + 1) for w, e in zip(reference.weights(2), sorted(experts), strict=True))
    return (total % 2**64) >> 32


def test_one_static_length_per_suite_whatever_ran_before(llama_folder: Path) -> None:
    fresh = decode(engine(llama_folder, cache="static"), SHORT)
    made = engine(llama_folder, cache="static")
    decode(made, LONG)
    after = decode(made, SHORT)
    assert after.entry() == fresh.entry()
    assert after.head.declared.cache.startswith("StaticCache:")


def test_the_cache_goes_under_the_name_that_the_model_takes(llama_folder: Path) -> None:
    model = engine(llama_folder)._bench.model  # type: ignore[union-attr]
    (name,) = cache_arguments(model, 64, 1)
    assert name in inspect.signature(model.forward).parameters
    assert decode(engine(llama_folder), SHORT).head.declared.cache == "DynamicCache"


def test_the_number_format_is_the_recipes(llama_folder: Path) -> None:
    made = engine(llama_folder)
    assert made._loaded is not None
    assert {p.dtype for p in made._loaded.model.parameters()} == {torch.bfloat16}
    assert not [said for said in made._loaded.warnings if "dtype" in said]
    assert decode(made, SHORT).head.dtype == "bfloat16"


def test_the_reference_arm_scores_in_float32(llama_folder: Path) -> None:
    trace = score(engine(llama_folder, Arm.REFERENCE), CHAT, [5, 6, 7])
    assert (trace.head.dtype, layers_of(trace).dtype) == ("float32", "float32")


def test_generate_does_not_compile(llama_folder: Path) -> None:
    model = engine(llama_folder, cache="static")._bench.model  # type: ignore[union-attr]
    if not uncompiled(model):  # no switch in this version: the compiled call is the plain one
        assert model.get_compiled_call(None) == model.__call__
    else:
        assert uncompiled(model) == {"disable_compile": True}
