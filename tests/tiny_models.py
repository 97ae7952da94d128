"""Tiny models on disk, made by the tests: random weights wide enough that tokens vary, and a byte-level tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, PreTrainedTokenizerFast

VOCAB = 512
SPREAD = 0.15  # standard deviation of the weights: with the library's 0.02 every output would be one token
SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "initializer_range": SPREAD,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def tiny_llama(folder: Path, **changes: Any) -> Path:
    """A Llama of four blocks; `changes` override its configuration."""
    return _save(LlamaForCausalLM, LlamaConfig(**{**SHAPE, **changes}), folder)


def tiny_mixture(folder: Path, **changes: Any) -> Path:
    """A Mixtral of four blocks with four experts, two of which work on each token."""
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    return _save(MixtralForCausalLM, MixtralConfig(**{**SHAPE, **experts, **changes}), folder)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte behind three special ones; the rest of the vocabulary is never produced by text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = {"pad_token": SPECIAL[0], "eos_token": SPECIAL[2], "additional_special_tokens": [SPECIAL[1]]}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.chat_template = TEMPLATE
    return fast


def _save(kind: Any, config: Any, folder: Path) -> Path:
    state = torch.random.get_rng_state()
    torch.manual_seed(20240607)
    model = kind(config)
    torch.random.set_rng_state(state)
    model.generation_config.eos_token_id = config.eos_token_id
    model.generation_config.pad_token_id = config.pad_token_id
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
