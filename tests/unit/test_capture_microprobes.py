"""Microprobes: inputs by formula, digests that a changed bit changes, unknowns where runs disagree."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig

from driftpin.environment import Unknown
from runner.capture import microprobes
from runner.capture.microprobes import MicroprobeShapes, behaviour_facts, numbers, tensor_digest, twice

SHAPES = MicroprobeShapes(hidden=16, heads=4, kv_heads=2, head_dim=4, intermediate=24, vocabulary=32, prompt=8, batch=3)
CPU = torch.device("cpu")
MASK = 2**64 - 1


def formula(stream: int, index: int) -> float:
    z = (stream * 2**32 + index % 65521 + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return (((z ^ z >> 31) >> 40) - 2**23) / 2**23


def test_inputs_follow_the_published_formula() -> None:
    made = numbers(3, 65521 + 5).tolist()
    for index in (0, 1, 65520, 65521, 65525):
        assert made[index] == formula(3, index)
    assert numbers(3, 2, scale=4.0).tolist() == [4 * formula(3, 0), 4 * formula(3, 1)]


def test_every_operator_is_hashed_at_every_number_of_rows() -> None:
    facts = behaviour_facts(SHAPES, torch.bfloat16, CPU, nullcontext)
    operators = {"linear", "linear_down", "logits", "attention", "rms_norm", "softmax"}
    assert set(facts) == {f"{o}.{c}" for o in operators for c in ("m1", "m8", "b3")} | {"reduction.long"}
    assert all(str(fact).startswith("v1:") for fact in facts.values())
    assert facts == behaviour_facts(SHAPES, torch.bfloat16, CPU, nullcontext)


def test_another_precision_behaves_differently_everywhere() -> None:
    half = behaviour_facts(SHAPES, torch.bfloat16, CPU, nullcontext)
    full = behaviour_facts(SHAPES, torch.float32, CPU, nullcontext)
    assert not [name for name in half if half[name] == full[name]]


def test_a_kernel_that_rounds_once_less_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = behaviour_facts(SHAPES, torch.float32, CPU, nullcontext)
    real = torch.nn.functional.linear
    monkeypatch.setattr(torch.nn.functional, "linear", lambda x, w: real(x.double(), w.double()).float())
    after = behaviour_facts(SHAPES, torch.float32, CPU, nullcontext)
    changed = {name.split(".")[0] for name in before if before[name] != after[name]}
    assert changed
    assert changed <= {"linear", "linear_down", "logits"}


def test_two_runs_that_disagree_are_unknown() -> None:
    results = iter([torch.zeros(2), torch.ones(2)])
    fact = twice(lambda: next(results))
    assert fact == Unknown("two runs in a row gave different bits")


def test_an_operator_that_does_not_run_is_unknown_with_its_reason() -> None:
    facts = behaviour_facts(replace(SHAPES, kv_heads=3), torch.float32, CPU, nullcontext)
    assert isinstance(facts["attention.m1"], Unknown)
    assert "does not run here" in facts["attention.m1"].reason
    assert not isinstance(facts["linear.m1"], Unknown)


def test_a_digest_tells_rows_apart() -> None:
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert tensor_digest(rows) != tensor_digest(rows.flip(0))
    assert tensor_digest(rows) != tensor_digest(rows.to(torch.bfloat16))


def test_shapes_come_from_the_configuration() -> None:
    config = LlamaConfig(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=40, vocab_size=50
    )
    shapes = MicroprobeShapes.of(config, prompt=7)
    assert (shapes.hidden, shapes.heads, shapes.kv_heads, shapes.head_dim) == (24, 3, 1, 8)
    assert (shapes.intermediate, shapes.vocabulary, list(shapes.cases)) == (40, 50, ["m1", "m7", "b4"])
    assert MicroprobeShapes.of(LlamaConfig(vocab_size=100_000)).vocabulary == microprobes.VOCABULARY


def test_a_width_per_block_counts_as_its_first() -> None:
    text = SimpleNamespace(hidden_size=24, num_attention_heads=3, intermediate_size=[40, 48], vocab_size=50)
    config = SimpleNamespace(get_text_config=lambda decoder: text)  # Gemma 3n's has such a list
    assert MicroprobeShapes.of(config).intermediate == 40
