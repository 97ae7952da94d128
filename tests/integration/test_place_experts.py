"""Mixtures of experts as transformers builds them: every family's choices are recorded, position by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import LogitsProcessorList

from runner.recording.blocks import find_blocks, find_routers
from runner.recording.digest import combined
from runner.recording.recorder import DecodeRecorder, ScoreRecorder

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "eos_token_id": None,
    "bos_token_id": 1,
    "num_experts_per_tok": 2,
}
GROUPED = {"n_routed_experts": 8, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16, "n_shared_experts": 1}
FAMILIES: dict[str, dict[str, Any]] = {
    "Mixtral": {"num_local_experts": 4},
    "Qwen2Moe": {"num_experts": 4, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16},
    "Qwen3Moe": {"num_experts": 4, "moe_intermediate_size": 16, "head_dim": 8, "decoder_sparse_step": 1},
    "Olmoe": {"num_experts": 4},
    "GraniteMoe": {"num_local_experts": 4},
    "GptOss": {"num_local_experts": 4, "head_dim": 8},
    "Glm4Moe": {**GROUPED, "first_k_dense_replace": 1, "head_dim": 8},
    "DeepseekV3": {
        **{**GROUPED, "first_k_dense_replace": 1, "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 16},
        **{"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8},
    },
}
DENSE_FIRST = ("Glm4Moe", "DeepseekV3")
LOGITS_TOLD = ("Mixtral", "Qwen2Moe", "Qwen3Moe", "Olmoe")  # these hand their routers' logits back when asked
PROMPT, NEW = 10, 4
IDS = torch.arange(1, PROMPT + 1)[None]


def model_of(family: str) -> Any:
    if not hasattr(transformers, f"{family}ForCausalLM"):
        pytest.skip(f"this transformers has no {family}")
    config = getattr(transformers, f"{family}Config")(**{**SHAPE, **FAMILIES[family]})
    torch.manual_seed(5)
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


def scored(model: Any) -> dict[str, np.ndarray[Any, Any]]:
    recorder = ScoreRecorder(model, length=PROMPT, batch=1, output_ids=IDS[0, -3:])
    with torch.inference_mode(), recorder:
        model(IDS, use_cache=False)
    layers = recorder.finish().layers
    assert layers is not None
    return layers.experts


@pytest.mark.parametrize("family", FAMILIES)
def test_the_choices_of_every_block_line_up_with_positions(family: str) -> None:
    model = model_of(family)
    routers = [router.block for router in find_routers(find_blocks(model))]
    assert len(routers) == 2 - (family in DENSE_FIRST)
    score = scored(model)
    assert list(score) == routers
    assert {digests.shape for digests in score.values()} == {(PROMPT,)}
    assert all(len(set(digests.tolist())) > 1 for digests in score.values())  # not one choice for all

    recorder = DecodeRecorder(model, prompt=PROMPT, width=PROMPT, batch=1, limit=NEW, forcing=False)
    with torch.inference_mode(), recorder:
        listen = LogitsProcessorList([recorder.witness])
        out = model.generate(IDS, max_new_tokens=NEW, do_sample=False, logits_processor=listen)
        layers = recorder.finish(out[0, PROMPT:]).layers
    assert layers is not None
    assert {digests.shape for digests in layers.experts.values()} == {(NEW,)}
    # The first step of a decode is the last position of the prompt, which the score saw too.
    assert {name: int(digests[0]) for name, digests in layers.experts.items()} == {
        name: int(digests[PROMPT - 1]) for name, digests in score.items()
    }


@pytest.mark.parametrize("family", LOGITS_TOLD)
def test_the_digests_are_those_of_the_experts_that_were_called(family: str) -> None:
    """Against the router's own logits, told by the library in another way."""
    model = model_of(family)
    with torch.inference_mode():
        logits = model(IDS, use_cache=False, output_router_logits=True).router_logits
    chosen = [np.sort(rows.reshape(PROMPT, -1).topk(2, dim=-1).indices.numpy(), axis=-1) for rows in logits]
    expected = [(combined(ids.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32) for ids in chosen]
    found = list(scored(model).values())
    assert len(found) == len(expected) == 2
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
