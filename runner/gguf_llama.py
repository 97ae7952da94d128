"""A Llama model stored as GGUF, read as plain float32 tensors under their Hugging Face names. Knows no cache folder.

llama.cpp stores the rows of the query and key projections interleaved for its rotary embedding (`permute` in its
`convert_hf_to_gguf.py`); transformers rotates halves, so the interleaving is undone here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from driftpin.errors import ModelError

TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
CONTROL_TOKEN = 3  # gguf.TokenType.CONTROL


class GgufLlama:
    """One GGUF file of architecture `llama`; tensors are de-quantised one at a time, on demand."""

    def __init__(self, path: Path) -> None:
        """Opens the file; raises `ModelError` for a file that is not GGUF or not a Llama."""
        try:
            self._reader = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError) as error:
            raise ModelError(f"{path.name} cannot be read as GGUF: {error}.", remedy="Install it again.") from error
        if self.field("general.architecture") != "llama":
            raise ModelError(f"{path.name} holds a {self.field('general.architecture')} model, not a Llama.")

    def field(self, name: str) -> Any:
        """A metadata value, or None."""
        found = self._reader.fields.get(name)
        return None if found is None else found.contents()

    @property
    def names(self) -> list[str]:
        """Hugging Face names of all tensors, sorted."""
        return sorted(hugging_face_name(tensor.name) for tensor in self._reader.tensors)

    def tensors(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """(Hugging Face name, float32 values) in the order of the file."""
        for tensor in self._reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
            yield hugging_face_name(tensor.name), self._unpermuted(tensor.name, values)

    def _unpermuted(self, name: str, values: NDArray[np.float32]) -> NDArray[np.float32]:
        heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(name.split(".")[-2])
        if heads is None:
            return values
        return unpermute(values, self.field(f"llama.attention.{heads}"))

    def config(self) -> dict[str, Any]:
        """`config.json` in the form that transformers 4 and 5 both read, without a dtype."""
        heads = self.field("llama.attention.head_count")
        hidden = self.field("llama.embedding_length")
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": self.field("tokenizer.ggml.bos_token_id"),
            "eos_token_id": self.field("tokenizer.ggml.eos_token_id"),
            "pad_token_id": self.field("tokenizer.ggml.padding_token_id"),
            "head_dim": hidden // heads,
            "hidden_act": "silu",
            "hidden_size": hidden,
            "intermediate_size": self.field("llama.feed_forward_length"),
            "max_position_embeddings": self.field("llama.context_length"),
            "mlp_bias": False,
            "num_attention_heads": heads,
            "num_hidden_layers": self.field("llama.block_count"),
            "num_key_value_heads": self.field("llama.attention.head_count_kv"),
            "rms_norm_eps": _shortest(self.field("llama.attention.layer_norm_rms_epsilon")),
            "rope_theta": _shortest(self.field("llama.rope.freq_base")),
            "tie_word_embeddings": "lm_head.weight" not in self.names,
            "vocab_size": self.field("llama.vocab_size"),
        }


def hugging_face_name(name: str) -> str:
    """`blk.0.attn_q.weight` becomes `model.layers.0.self_attn.q_proj.weight`; raises `ModelError` for other names."""
    if name in TOP:
        return TOP[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in BLOCK:
        return f"model.layers.{parts[1]}.{BLOCK[parts[2]]}.{parts[3]}"
    raise ModelError(f"The GGUF tensor {name} has no place in a Llama model.")


def unpermute(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows [heads * 2 * half, columns] from llama.cpp's interleaved order back to the two halves of each head."""
    half = values.shape[0] // heads // 2
    return values.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(values.shape)


def _shortest(number: float) -> float:
    return float(str(np.float32(number)))  # GGUF keeps float32: 9.99e-06 was written as 1e-05
