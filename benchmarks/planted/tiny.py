"""Builders of the tiny models: the tests' own for Llama and Mixtral, two more architectures on the same sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, Qwen3Config, Qwen3ForCausalLM

from tests.tiny_models import SHAPE, tiny_llama, tiny_mixture, tiny_tokenizer

SEED = 20240607
WINDOW = 32  # of the sliding blocks: shorter than the prompts, so that they slide
SIZES = {**SHAPE, "head_dim": 16}


def llama(folder: Path, blocks: int) -> Path:
    """Grouped keys, untied head."""
    return tiny_llama(folder, num_hidden_layers=blocks)


def mixture(folder: Path, blocks: int) -> Path:
    """Four experts per block, two of which work on a token."""
    return tiny_mixture(folder, num_hidden_layers=blocks)


def qwen3(folder: Path, blocks: int) -> Path:
    """Queries and keys are normalised per head."""
    return _save(Qwen3ForCausalLM, Qwen3Config(**{**SIZES, "num_hidden_layers": blocks}), folder)


def gemma3(folder: Path, blocks: int) -> Path:
    """Scaled embeddings, norms on both sides of a block, sliding blocks between full ones, tied head."""
    types = ["full_attention" if (i + 1) % 3 == 0 else "sliding_attention" for i in range(blocks)]
    sizes = {**SIZES, "num_hidden_layers": blocks, "sliding_window": WINDOW, "query_pre_attn_scalar": 16}
    return _save(Gemma3ForCausalLM, Gemma3TextConfig(**sizes, layer_types=types), folder)


def _save(kind: Any, config: Any, folder: Path) -> Path:
    state = torch.random.get_rng_state()
    torch.manual_seed(SEED)
    model = kind(config)
    torch.random.set_rng_state(state)
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = config.eos_token_id, 0
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


BUILDERS = {"llama": llama, "mixture": mixture, "qwen3": qwen3, "gemma3": gemma3}
