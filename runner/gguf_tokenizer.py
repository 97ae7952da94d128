"""The tokenizer inside a GGUF file, written as `tokenizer.json` and `tokenizer_config.json`. Knows only SmolLM's kind.

transformers' own conversion forgets that SmolLM splits off every digit before byte-level BPE, which changes the ids of
blanks before digits; so the tokenizer is built here from its parts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from driftpin.errors import ModelError
from runner.gguf_llama import CONTROL_TOKEN, GgufLlama


def build_tokenizer(source: GgufLlama) -> Tokenizer:
    """Byte-level BPE with single digits; raises `ModelError` for any other pre-tokenizer."""
    kind = (source.field("tokenizer.ggml.model"), source.field("tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise ModelError(f"The GGUF file has a tokenizer of kind {kind}; only ('gpt2', 'smollm') is known here.")
    tokens = source.field("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in source.field("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    digits, bytes_ = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    control = [
        t for t, kind in zip(tokens, source.field("tokenizer.ggml.token_type"), strict=True) if kind == CONTROL_TOKEN
    ]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return tokenizer


def tokenizer_config(source: GgufLlama) -> dict[str, Any]:
    """`tokenizer_config.json` in the form that transformers 4 and 5 both read, chat template included."""
    tokens = source.field("tokenizer.ggml.tokens")
    special = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    named = {f"{k}_token": tokens[source.field(f"tokenizer.ggml.{v}_token_id")] for k, v in special.items()}
    return named | {
        "add_prefix_space": False,
        "chat_template": source.field("tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "model_max_length": source.field("llama.context_length"),
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def write_tokenizer(source: GgufLlama, folder: Path) -> None:
    """Both files into `folder`."""
    build_tokenizer(source).save(str(folder / "tokenizer.json"))
    text = json.dumps(tokenizer_config(source), indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
