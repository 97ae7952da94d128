"""Decode and score on tiny models, against slow recomputations that share no code with the recorders."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import VOCAB
from transformers import AutoModelForCausalLM

from driftpin.trace import digest as reference
from driftpin.trace import sketch
from driftpin.trace.head import Head
from driftpin.trace.health import Ill, ills
from driftpin.trace.layers import Layers, dequantise
from driftpin.trace.probe import Arm, Greedy, Probe, Shape, StopReason
from runner.engines.batching import Vocabulary
from runner.engines.bench import Bench, Run, decode, score
from runner.engines.observer import observer_check, same_bits
from runner.recording import digest

PROMPT = [1, 68, 79, 68, 79, 90, 2, 44, 45, 46, 47, 48, 77]
LIMIT = 20
DTYPES = [torch.float32, torch.bfloat16]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def load(folder: Path, dtype: torch.dtype = torch.float32, **changes: Any) -> Bench:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    given: dict[str, Any] = {"ends": frozenset(), "vocabulary": Vocabulary.of(VOCAB, (0, 1, 2), 0)}
    model.generation_config.eos_token_id = None
    return Bench(model=model, arm=Arm.NATIVE, **(given | changes))


def run(bench: Bench, shape: Shape = Shape.ALONE, limit: int = LIMIT, **more: Any) -> Run:
    ends = sorted(bench.ends) or None
    arguments = {"max_new_tokens": limit, "do_sample": False, "eos_token_id": ends, "pad_token_id": 0}
    return decode(bench, PROMPT, shape, arguments | more)


def layers_of(execution: Run) -> Layers:
    assert execution.layers is not None, execution.layers_absent
    return execution.layers


class Watch:
    """Everything a model computes for one row, kept whole: block outputs and raw logits of each forward."""

    def __init__(self, model: Any, row: int = 0) -> None:
        self.states: list[list[np.ndarray]] = []  # [forward][block] of [tokens, hidden]
        self.logits: list[np.ndarray] = []  # [forward] of [tokens, vocab]
        self.experts: list[list[np.ndarray]] = []  # [forward][block] of [tokens, k]
        decoder, norm = model.model.layers, model.model.norm
        for layer in decoder[1:]:
            layer.register_forward_pre_hook(lambda m, args: self.states[-1].append(args[0][row].float().numpy()))
        norm.register_forward_pre_hook(lambda m, args: self.states[-1].append(args[0][row].float().numpy()))
        decoder[0].register_forward_pre_hook(lambda m, args: (self.states.append([]), self.experts.append([]), None)[2])
        model.lm_head.register_forward_hook(lambda m, args, out: self.logits.append(out[row].float().numpy()))
        for layer in decoder:
            if hasattr(layer.mlp, "gate"):
                layer.mlp.gate.register_forward_hook(self._route)

    def _route(self, module: Any, args: Any, out: Any) -> None:
        self.experts[-1].append(np.argsort(-out[0].float().numpy(), axis=-1, kind="stable")[:, : module.top_k])


def upper(rows: np.ndarray) -> list[int]:
    return [int(n) >> 32 for n in reference.row_sums(rows)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_decode_records_what_the_model_computed(llama_folder: Path, dtype: torch.dtype) -> None:
    bench = load(llama_folder, dtype)
    watch = Watch(bench.model)
    got = run(bench)
    head, layers = got.head, layers_of(got)
    raw = np.stack([rows[-1] for rows in watch.logits])
    last = [np.stack([states[block][-1] for states in watch.states]) for block in range(4)]

    assert head.output_ids.tolist() == raw.argmax(-1).tolist()
    assert len(set(head.output_ids.tolist())) > 5  # the tiny model must not be a trivial case
    assert head.digest.tolist() == reference.row_sums(raw).tolist()
    assert head.dtype == layers.dtype == str(dtype).removeprefix("torch.")
    log_z = np.log(np.exp(raw.astype(np.float64)).sum(-1))
    np.testing.assert_allclose(head.logprob, raw[np.arange(LIMIT), head.output_ids] - log_z, atol=2e-6)
    order = [sorted(range(VOCAB), key=lambda i, row=row: (-row[i], i))[:20] for row in raw]
    assert head.topk_ids.tolist() == order
    assert head.greedy.tolist() == [Greedy.PROVEN] * LIMIT
    assert layers.blocks == tuple(f"model.layers.{i}" for i in range(4))
    assert layers.cells.tolist() == [upper(rows) for rows in last]
    assert layers.first_position == len(PROMPT) - 1
    leaves = [reference.leaf(layers.dtype, 64, int(n)) for rows in last for n in reference.row_sums(rows)]
    assert layers.root == reference.merkle_root(leaves)
    np.testing.assert_allclose(dequantise(layers.rms), [np.sqrt((r**2).mean(-1)) for r in last], rtol=0.012)
    np.testing.assert_allclose(dequantise(layers.absmax), [np.abs(r).max(-1) for r in last], rtol=0.012)
    prefill = np.stack([reference.row_sums(states) for states in watch.states[0]])
    assert layers.prefill.tolist() == digest.combined(prefill).tolist()
    assert layers.sketch.shape == (4, 0, 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_score_records_every_position(llama_folder: Path, dtype: torch.dtype) -> None:
    bench = load(llama_folder, dtype)
    given = run(bench).output_ids
    watch = Watch(bench.model)
    got = score(bench, PROMPT, Shape.ALONE, given, LIMIT)
    head, layers = got.head, layers_of(got)
    length = len(PROMPT) + LIMIT - 1

    assert len(watch.states) == 1
    assert watch.logits[0].shape == (LIMIT, VOCAB)  # logits of the scored positions only
    assert head.digest.tolist() == reference.row_sums(watch.logits[0]).tolist()
    assert head.output_ids.tolist() == given
    assert set(head.greedy.tolist()) == {Greedy.FORCED}
    assert (head.stop, head.declared.probe, head.declared.cache) == (StopReason.FORCED, Probe.SCORE, "none")
    assert layers.cells.tolist() == [upper(states) for states in watch.states[0]]
    assert layers.cells.shape == (4, length)
    assert layers.sketch_positions.tolist() == sketch.positions(length, 10 if dtype is torch.float32 else 16).tolist()
    signed = [states[layers.sketch_positions] @ sketch.signs(64).T for states in watch.states[0]]
    np.testing.assert_allclose(layers.sketch, signed, rtol=1e-3, atol=1e-4)
    assert layers.prefill.shape == (0,)


def test_score_predicts_what_decode_emitted(llama_folder: Path) -> None:
    bench = load(llama_folder)
    decoded = run(bench)
    scored = score(bench, PROMPT, Shape.ALONE, decoded.output_ids, LIMIT)
    assert scored.head.topk_ids[:, 0].tolist() == decoded.output_ids
    np.testing.assert_allclose(scored.head.logprob, decoded.head.logprob, atol=1e-4)


@pytest.mark.parametrize("probe", list(Probe))
def test_small_chunks_give_the_same_trace(llama_folder: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = load(llama_folder, torch.bfloat16)

    def execute() -> Run:
        decoded = run(bench)
        return decoded if probe is Probe.DECODE else score(bench, PROMPT, Shape.ALONE, decoded.output_ids, LIMIT)

    whole = execute()
    monkeypatch.setattr(digest, "CHUNK_BYTES", 8 * VOCAB * 3)
    parts = execute()
    assert parts.head.to_bytes() == whole.head.to_bytes()
    assert layers_of(parts).to_bytes() == layers_of(whole).to_bytes()


@pytest.mark.parametrize("shape", [Shape.FILLED, Shape.PADDED])
def test_shapes_record_the_first_row_without_its_padding(llama_folder: Path, shape: Shape) -> None:
    bench = load(llama_folder)
    alone, watch = run(bench), Watch(bench.model)
    got = run(bench, shape)
    padding = 16 if shape is Shape.PADDED else 0
    assert watch.states[0][0].shape[0] == len(PROMPT) + padding
    real = np.stack([reference.row_sums(states[padding:]) for states in watch.states[0]])
    assert layers_of(got).prefill.tolist() == digest.combined(real).tolist()
    assert got.head.digest.tolist() == reference.row_sums(np.stack([rows[-1] for rows in watch.logits])).tolist()
    assert got.output_ids == alone.output_ids
    assert got.head.prompt_ids.tolist() == PROMPT
    np.testing.assert_allclose(got.head.logprob, alone.head.logprob, atol=1e-4)
    assert got.head.declared.batch == "rows=4,filler=v1" + (",padding=16" if padding else "")
    scored = score(bench, PROMPT, shape, got.output_ids, LIMIT)
    np.testing.assert_allclose(scored.head.logprob, alone.head.logprob, atol=1e-4)
    assert layers_of(scored).cells.shape == (4, len(PROMPT) + LIMIT - 1)


@pytest.mark.parametrize("shape", list(Shape))
def test_everything_behind_the_end_token_is_cut(llama_folder: Path, shape: Shape) -> None:
    free = run(load(llama_folder))
    end = free.output_ids[6]
    first = free.output_ids.index(end)
    got = run(load(llama_folder, ends=frozenset({end})), shape)
    assert got.output_ids == free.output_ids[: first + 1]
    assert got.head.stop is StopReason.END
    assert len(got.head.digest) == first + 1
    assert layers_of(got).cells.shape == (4, first + 1)
    assert free.head.stop is StopReason.LENGTH


def test_a_static_cache_does_not_remember_a_longer_canary(llama_folder: Path) -> None:
    fresh = run(load(llama_folder, torch.bfloat16, static_length=128))
    bench = load(llama_folder, torch.bfloat16, static_length=128)
    run(bench, limit=60)
    after = run(bench)
    assert after.head.to_bytes() == fresh.head.to_bytes()
    assert layers_of(after).to_bytes() == layers_of(fresh).to_bytes()
    assert after.head.declared.cache == "StaticCache:128"
    assert run(load(llama_folder, torch.bfloat16)).head.declared.cache == "DynamicCache"


@pytest.mark.parametrize("shape", list(Shape))
def test_experts_are_the_sorted_choice_of_each_router(mixture_folder: Path, shape: Shape) -> None:
    bench = load(mixture_folder)
    watch = Watch(bench.model)
    got = layers_of(run(bench, shape))
    rows = 1 if shape is Shape.ALONE else 4
    assert got.expert_blocks == tuple(f"model.layers.{i}.mlp" for i in range(4))

    def code(chosen: np.ndarray) -> int:
        total = sum((int(w) * (int(e) + 1)) for w, e in zip(reference.weights(2), sorted(chosen), strict=True))
        return (total % 2**64) >> 32

    for block in range(4):
        mine = [step[block][len(step[block]) // rows - 1] for step in watch.experts]
        assert got.experts[block].tolist() == [code(chosen) for chosen in mine]
    assert len(set(got.experts.reshape(-1).tolist())) > 1


def test_a_score_has_experts_at_every_position(mixture_folder: Path) -> None:
    bench = load(mixture_folder)
    decoded = run(bench)
    scored = layers_of(score(bench, PROMPT, Shape.PADDED, decoded.output_ids, LIMIT))
    assert scored.experts.shape == (4, len(PROMPT) + LIMIT - 1)
    assert scored.experts[:, len(PROMPT) - 1 :].tolist() == layers_of(decoded).experts.tolist()


def test_a_dense_model_has_no_experts(llama_folder: Path) -> None:
    got = layers_of(run(load(llama_folder)))
    assert got.expert_blocks == ()
    assert got.experts.shape == (0, LIMIT)


@pytest.mark.parametrize("probe", list(Probe))
def test_nan_weights_still_give_a_trace(llama_folder: Path, probe: Probe) -> None:
    bench = load(llama_folder)
    bench.model.model.layers[2].mlp.down_proj.weight.data[0, 0] = math.nan
    got = run(bench) if probe is Probe.DECODE else score(bench, PROMPT, Shape.ALONE, [3, 4, 5], 3)
    layers = layers_of(got)
    assert (got.head.nonfinite == VOCAB).all()
    assert (layers.nonfinite[:2] == 0).all()
    assert (layers.nonfinite[2:] > 0).all()
    assert Ill.NONFINITE in ills(got.head, layers)
    assert Ill.NOT_GREEDY not in ills(got.head, layers)
    assert Head.from_bytes(got.head.to_bytes()).to_bytes() == got.head.to_bytes()


def test_one_token_for_ever_is_a_trace(llama_folder: Path) -> None:
    bench = load(llama_folder)
    bench.model.lm_head.weight.data.zero_()
    got = run(bench)
    assert got.output_ids == [0] * LIMIT
    assert set(got.head.boundary_ties.tolist()) == {VOCAB - 20}
    assert ills(got.head, got.layers) == (Ill.ONE_TOKEN,)


def test_a_sampled_token_is_caught(llama_folder: Path) -> None:
    torch.manual_seed(3)
    got = run(load(llama_folder), do_sample=True, temperature=5.0)
    best = got.head.topk_ids[:, 0] == got.head.output_ids
    assert got.head.greedy.tolist() == [Greedy.PROVEN if hit else Greedy.VIOLATED for hit in best]
    assert Greedy.VIOLATED in got.head.greedy


def test_a_declared_processor_leaves_the_decode_greedy(llama_folder: Path) -> None:
    plain = run(load(llama_folder))
    got = run(load(llama_folder), repetition_penalty=3.0)
    assert got.output_ids != plain.output_ids
    assert set(got.head.greedy.tolist()) == {Greedy.PROVEN}
    assert (got.head.topk_ids[:, 0] != got.head.output_ids).any()  # raw logits, so the penalty shows


def test_forced_positions_are_exempt(llama_folder: Path) -> None:
    got = run(load(llama_folder, forcing=True), forced_eos_token_id=7)
    assert got.output_ids[-1] == 7
    assert got.head.greedy.tolist() == [Greedy.PROVEN] * (LIMIT - 1) + [Greedy.FORCED]


def test_recording_does_not_change_the_logits(llama_folder: Path, mixture_folder: Path) -> None:
    arguments = {"max_new_tokens": LIMIT, "do_sample": False}
    for folder in (llama_folder, mixture_folder):
        assert observer_check(load(folder, torch.bfloat16), PROMPT, arguments) is None


def test_the_observer_check_finds_an_observer_that_interferes(llama_folder: Path) -> None:
    bench = load(llama_folder)
    block, arguments = bench.model.model.layers[1], {"max_new_tokens": 4, "do_sample": False}
    plain = type(block).forward

    def disturbed(*args: Any, **kwargs: Any) -> Any:
        states = plain(block, *args, **kwargs)
        return states * (1 + 2**-20) if block._forward_hooks else states

    block.forward = disturbed
    assert observer_check(bench, PROMPT, arguments) == "Recording changed the logits of decode step 0."


def test_same_bits() -> None:
    assert same_bits(torch.tensor([1.0, math.nan]), torch.tensor([1.0, -math.nan]))
    assert not same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not same_bits(torch.tensor([math.nan]), torch.tensor([1.0]))


def test_hooks_come_off_also_after_an_error(llama_folder: Path) -> None:
    bench = load(llama_folder)

    def count() -> int:
        return sum(len(module._forward_hooks) for module in bench.model.modules())

    before = count()
    with pytest.raises(TypeError):
        run(bench, temperature=None, min_new_tokens="three")
    run(bench)
    assert count() == before


def test_without_layer_hooks_the_head_is_the_same(llama_folder: Path) -> None:
    hooked, bare = run(load(llama_folder)), run(load(llama_folder, hook_layers=False))
    assert bare.layers is None
    assert bare.layers_absent == "a compiled or graph-captured model is recorded without layer hooks"
    assert bare.head.to_bytes() == hooked.head.to_bytes()


def test_recording_keeps_no_logits_per_step(llama_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffer holds a chunk of rows; when the run is over, no tensor of vocabulary width is left but the weights."""
    monkeypatch.setattr(digest, "CHUNK_BYTES", 8 * VOCAB * 3)
    bench = load(llama_folder)

    def wide() -> int:
        gc.collect()
        tensors = (t for t in gc.get_objects() if issubclass(type(t), torch.Tensor))
        stores = (t.untyped_storage() for t in tensors if t.ndim and t.shape[-1] == VOCAB)
        return sum({store.data_ptr(): store.nbytes() for store in stores}.values())

    before, seen = wide(), []
    bench.model.model.norm.register_forward_pre_hook(lambda m, args: seen.append(wide() if len(seen) % 15 == 14 else 0))
    run(bench, limit=30)
    row = VOCAB * 4
    assert max(seen) - before <= 10 * row  # 4 in the buffer, 1 pending for the proof, a few of generate's own
    assert wide() == before
