"""The reference arm block by block: the bits of the whole one on models of many kinds, everything loaded once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from replaying import kept_process_state
from safetensors.torch import load_file, save_file
from tiny_models import SHAPE, tiny_llama, tiny_mixture, tiny_tokenizer
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PretrainedConfig

from driftpin.environment.environment import Equality, equality
from driftpin.environment.fact import Unknown
from driftpin.errors import CannotMeasureError, ModelError
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.probe import Arm, Probe, Shape, TraceKey
from driftpin.trace.traceset import Trace
from runner.checkpoint import Checkpoint
from runner.engines.protocol import ScoreRequest
from runner.engines.registry import build
from runner.engines.transformers import TransformersEngine
from runner.piecewise import Pieces

SHORT = Canary(id="short", prompt="2 + 2 =", settings=CanarySettings(max_new_tokens=6))
LONG = Canary(
    id="long", messages=(Message(role="user", content="tell me " * 9),), settings=CanarySettings(max_new_tokens=12)
)
SUITE = Suite(name="tiny", canaries=(SHORT, LONG))
WHOLE, BLOCKS = "whole", "block_by_block"
MIXED = {"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 8, "head_dim": 16}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen 2, tied": ("qwen2", {"tie_word_embeddings": True}),
    "Qwen 3": ("qwen3", {"head_dim": 16}),
    "Gemma 2, capped, mixed masks": ("gemma2", {**MIXED, "query_pre_attn_scalar": 16, "attention": "eager"}),
    "Gemma 3, mixed masks": ("gemma3_text", {**MIXED, "query_pre_attn_scalar": 16}),
    "Granite, scaled logits": ("granite", {"logits_scaling": 3.0, "embedding_multiplier": 2.0}),
    "Qwen 3 mixture": (
        "qwen3_moe",
        {"head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    ),
    "GPT-2, buffers in its blocks": ("gpt2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 1024}),
}


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


def tiny(kind: str, folder: Path, **changes: Any) -> Path:
    """A model of any architecture, its numbers in bfloat16 as most files hold them."""
    config: PretrainedConfig = CONFIG_MAPPING[kind](**{**SHAPE, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(20240607)
        model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = 2, 0
    model.save_pretrained(folder, max_shard_size="200KB")
    tiny_tokenizer().save_pretrained(folder)
    return folder


def engine(folder: Path, way: str, **changes: Any) -> TransformersEngine:
    given = {"engine": "transformers", "model": "tiny", "path": str(folder), "threads": 1, **changes}
    made = build(Recipe(options={"reference": way}, **given), Arm.REFERENCE, SUITE)
    assert isinstance(made, TransformersEngine)
    made.load()
    return made


def requests(made: TransformersEngine, shapes: Sequence[Shape] = tuple(Shape)) -> list[ScoreRequest]:
    """Every canary in every shape, two seeds of the yardstick among them."""
    return [
        ScoreRequest(
            key=TraceKey(canary=canary.id, probe=Probe.SCORE, shape=shape, repeat=repeat),
            canary=canary,
            rendered=made.render(canary, None),
            output_ids=(5, 9, 17, 33, 65, 129),
        )
        for shape in shapes
        for canary in SUITE.canaries
        for repeat in range(2 if shape is Shape.PERTURBED else 1)
    ]


def scored(made: TransformersEngine, asked: Sequence[ScoreRequest]) -> list[Trace]:
    made.foresee(asked)
    return [made.score(one.key, one.canary, one.rendered, one.output_ids) for one in asked]


def in_both_ways(folder: Path, **changes: Any) -> tuple[list[Trace], list[Trace]]:
    both = []
    for way in (WHOLE, BLOCKS):
        made = engine(folder, way, **changes)
        made.warm_up()
        both.append(scored(made, requests(made)))
        made.close()
    return both[0], both[1]


def assert_same_bits(whole: Sequence[Trace], blocks: Sequence[Trace]) -> None:
    assert [trace.key for trace in whole] == [trace.key for trace in blocks]
    for a, b in zip(whole, blocks, strict=True):
        assert a.layers is not None
        assert b.layers is not None
        assert a.head.to_bytes() == b.head.to_bytes()
        assert a.layers.to_bytes() == b.layers.to_bytes()
        assert a.entry() == b.entry()
    assert len({trace.head.sha256 for trace in whole}) == len(whole)  # shapes and seeds do move something


def test_a_llama(llama_folder: Path) -> None:
    whole, blocks = in_both_ways(llama_folder, dtype="bfloat16")
    assert_same_bits(whole, blocks)
    assert {trace.head.dtype for trace in blocks} == {"float32"}
    assert {trace.head.declared.arm for trace in blocks} == {Arm.REFERENCE}


def test_a_mixture_whose_files_hold_its_experts_one_by_one(mixture_folder: Path) -> None:
    whole, blocks = in_both_ways(mixture_folder)
    assert_same_bits(whole, blocks)
    assert blocks[0].layers is not None
    assert len(blocks[0].layers.expert_blocks) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_other_architectures(kind: str, tmp_path: Path) -> None:
    name, given = KINDS[kind]
    changes = dict(given)
    attention = changes.pop("attention", "sdpa")
    assert_same_bits(*in_both_ways(tiny(name, tmp_path, **changes), attention=attention))


def test_every_tensor_is_read_once_and_one_block_is_there_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny("llama", tmp_path)
    read: Counter[str] = Counter()
    there: list[list[str]] = []
    plain_read, plain_load = Checkpoint.read, Pieces.load

    def counting(self: Checkpoint, name: str) -> torch.Tensor:
        read[name] += 1
        return plain_read(self, name)

    def looking(self: Pieces, path: str) -> Any:
        block = plain_load(self, path)
        there.append([p for p, b in self.blocks.items() if not all(t.is_meta for t in b.parameters())])
        return block

    monkeypatch.setattr(Checkpoint, "read", counting)
    monkeypatch.setattr(Pieces, "load", looking)
    made = engine(folder, BLOCKS)
    made.warm_up()
    assert len(scored(made, requests(made))) > 8

    shards = sorted(folder.glob("*.safetensors"))
    assert len(shards) == 2
    stored = [name for shard in shards for name in load_file(shard)]
    assert dict(read) == dict.fromkeys(stored, 1)
    assert there == [[f"model.layers.{n}"] for n in (0, 0, 1, 2, 3)]  # the warm-up's block stays for the scores
    assert made._pieces is not None
    assert all(t.is_meta for block in made._pieces.blocks.values() for t in block.parameters())


def test_a_score_that_was_not_foreseen_is_measured_all_the_same(llama_folder: Path) -> None:
    made = engine(llama_folder, BLOCKS)
    first, second = requests(made, (Shape.ALONE,))
    together = scored(made, [first, second])
    alone = made.score(second.key, second.canary, second.rendered, second.output_ids)
    assert alone.entry() == together[1].entry()
    other = made.score(second.key, second.canary, second.rendered, (7, 8))
    assert other.head.output_ids.tolist() == [7, 8]


def test_one_bad_score_spoils_no_other(llama_folder: Path) -> None:
    made = engine(llama_folder, BLOCKS)
    good, other = requests(made, (Shape.ALONE,))
    bad = ScoreRequest(key=other.key, canary=LONG, rendered=other.rendered, output_ids=(5, 100_000, 6))
    made.foresee([bad, good])
    with pytest.raises(IndexError):
        made.score(bad.key, bad.canary, bad.rendered, bad.output_ids)
    assert made.score(good.key, good.canary, good.rendered, good.output_ids).layers is not None


def test_weights_that_lack_a_tensor_are_refused_in_the_rest_and_in_a_block(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path)
    tensors = load_file(folder / "model.safetensors")

    def without(name: str) -> None:
        kept = {key: tensor for key, tensor in tensors.items() if key != name}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})

    without("model.norm.weight")
    with pytest.raises(ModelError, match=r"lack model.norm.weight.*random numbers"):
        engine(folder, BLOCKS)
    without("model.layers.2.mlp.up_proj.weight")
    made = engine(folder, BLOCKS)
    made.foresee(asked := requests(made, (Shape.ALONE,)))
    for one in asked:
        with pytest.raises(ModelError, match=r"lack model.layers.2.mlp.up_proj.weight"):
            made.score(one.key, one.canary, one.rendered, one.output_ids)


def doubled(layers: Sequence[Any], states: torch.Tensor, **given: Any) -> torch.Tensor:
    for layer in layers:
        states = layer(states, **given) * 2
    return states


def skipping(layers: Sequence[Any], states: torch.Tensor, **given: Any) -> torch.Tensor:
    for layer in (layers[0], layers[2], layers[3]):
        states = layer(states, **given)
    return states


def stopping(layers: Sequence[Any], states: torch.Tensor, **given: Any) -> torch.Tensor:
    for layer in layers[:2]:
        states = layer(states, **given)
    return states


def looking_back(layers: Sequence[Any], states: torch.Tensor, **given: Any) -> torch.Tensor:
    for layer in layers:
        states = layer(states, seen=[{"mean": states.mean()}], **given)
    return states


@pytest.mark.parametrize(
    ("through", "reason"),
    [
        (doubled, "the states are changed between them"),
        (skipping, "they are not called one after the other"),
        (stopping, "only 2 of 4 are called"),
        (looking_back, "a block is given more of the others than the states before it"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_models_whose_blocks_cannot_be_run_apart_are_refused_before_anything_is_scored(
    llama_folder: Path, monkeypatch: pytest.MonkeyPatch, through: Any, reason: str
) -> None:
    made = engine(llama_folder, BLOCKS)
    assert made._bench is not None
    base = made._bench.model.model

    def forward(input_ids: torch.Tensor, **_: Any) -> Any:
        states = base.embed_tokens(input_ids)
        places = base.rotary_emb(states, torch.arange(states.shape[1])[None])
        states = through(list(base.layers), states, position_embeddings=places)
        return SimpleNamespace(last_hidden_state=states, cache=None, hidden_states=None, attentions=None)

    monkeypatch.setattr(base, "forward", forward)
    with pytest.raises(CannotMeasureError, match=f"cannot be run apart: {reason}"):
        made.warm_up()
    made.foresee(asked := requests(made, (Shape.ALONE,)))
    for one in asked:
        with pytest.raises(CannotMeasureError, match=f"cannot be run apart: {reason}"):
            made.score(one.key, one.canary, one.rendered, one.output_ids)


def test_what_it_refuses(llama_folder: Path) -> None:
    made = engine(llama_folder, BLOCKS)
    rendered = made.render(SHORT, None)
    with pytest.raises(CannotMeasureError, match="does not decode"):
        made.decode(TraceKey(canary="short", probe=Probe.DECODE), SHORT, rendered)
    with pytest.raises(CannotMeasureError, match="none to compare with"):
        made.observer_check(SHORT, rendered)
    whole = engine(llama_folder, WHOLE)
    with pytest.raises(CannotMeasureError, match="does not decode"):
        whole.decode(TraceKey(canary="short", probe=Probe.DECODE), SHORT, rendered)
    assert whole.observer_check(SHORT, rendered) is None


def test_closing_lets_everything_go(llama_folder: Path) -> None:
    made = engine(llama_folder, BLOCKS)
    made.foresee(requests(made))
    made.close()
    assert (made._pieces, made._bench, made._loaded) == (None, None, None)
    with pytest.raises(RuntimeError, match="load"):
        made.render(SHORT, None)


def test_the_environment_tells_the_way_and_hides_nothing(tmp_path: Path) -> None:
    folder = tiny_mixture(tmp_path)
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": 2, "pad_token_id": 0, "repetition_penalty": 1.3})
    )
    facts = {way: engine(folder, way).environment() for way in (WHOLE, BLOCKS)}
    whole, blocks = facts[WHOLE], facts[BLOCKS]
    told = {name: fact for name, fact in blocks.context.items() if "reference." in name}
    assert told.pop("now.reference.memory_bytes") > 2**20
    assert told.pop("reference.memory_of") in ("available memory", "memory that the control group leaves")
    numbers = sum(whole.model["parameters.dtypes"].values())
    assert told == {
        "reference.way": BLOCKS,
        "reference.asked": True,
        "reference.weights": "as stored",
        "reference.parameter_bytes": 4 * numbers,
    }
    assert whole.context["reference.way"] == WHOLE
    # Which way ran is never hashed; what could not be looked at is unknown, not different.
    assert equality(whole.stack, blocks.stack) is Equality.SAME
    assert equality(whole.behaviour, blocks.behaviour) is Equality.SAME
    assert equality(whole.model, blocks.model) is Equality.UNDETERMINED
    unknown = {name for name, fact in blocks.model.items() if isinstance(fact, Unknown)}
    assert unknown == {"parameters.total", *(f"parameters.model.layers.{n}" for n in range(4))}
    assert {name: whole.model[name] for name in set(whole.model) - unknown} == {
        name: blocks.model[name] for name in set(blocks.model) - unknown
    }
