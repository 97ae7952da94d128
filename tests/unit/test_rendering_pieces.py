"""Pieces joined are what the tokenizer decodes, with real tokenizers of both common kinds."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from runner.pieces import token_pieces

TEXTS = ["a b", " leading", "é 🙂 日本", "line\nbreak\ttab\0nul", "<|im_start|>user\nhi<|im_end|>\n", "x é y<é>"]


def byte_level() -> PreTrainedTokenizerFast:
    vocab = {char: index for index, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocab |= {"Ġa": 256, "ab": 257}
    raw = Tokenizer(models.BPE(vocab=vocab, merges=[("Ġ", "a"), ("a", "b")]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    raw.add_tokens(["x é", "<é>"])
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<|im_start|>", eos_token="<|im_end|>")


def byte_fallback(decoder: Any = None) -> PreTrainedTokenizerFast:
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    vocab |= {"▁": 259, "a": 260, "b": 261, "▁a": 262}
    raw = Tokenizer(models.BPE(vocab=vocab, merges=[("▁", "a")], byte_fallback=True, unk_token="<unk>"))
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    raw.decoder = decoder or decoders.Sequence(llama)
    raw.add_special_tokens(["<unk>", "<s>", "</s>"])
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def decoded(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("make", [byte_level, byte_fallback])
def test_pieces_joined_are_the_decoded_text(make: Any, text: str) -> None:
    tokenizer = make()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    pieces = token_pieces(tokenizer, ids)
    assert len(pieces) == len(ids)
    assert b"".join(pieces).decode("utf-8", errors="replace") == decoded(tokenizer, ids)


@pytest.mark.parametrize("make", [byte_level, byte_fallback])
def test_an_emoji_is_four_byte_pieces(make: Any) -> None:
    tokenizer = make()
    ids = tokenizer("🙂", add_special_tokens=False)["input_ids"]
    assert list(token_pieces(tokenizer, ids))[-4:] == [bytes([byte]) for byte in "🙂".encode()]


def test_half_an_emoji_keeps_its_bytes() -> None:
    tokenizer = byte_fallback()
    assert token_pieces(tokenizer, [3 + 0xF0, 3 + 0x9F]) == (b"\xf0", b"\x9f")


def test_special_tokens_are_their_text_and_spaces_are_spaces() -> None:
    tokenizer = byte_fallback()
    assert token_pieces(tokenizer, [1, 262, 261, 262, 2]) == (b"<s>", b" a", b"b", b" a", b"</s>")
    assert token_pieces(tokenizer, [262, 262]) == (b"a", b" a")


def test_an_id_without_a_token_adds_nothing() -> None:
    tokenizer = byte_level()
    a = tokenizer("a", add_special_tokens=False)["input_ids"]
    assert token_pieces(tokenizer, [*a, 99_999, *a]) == (b"a", b"", b"a")
    assert token_pieces(tokenizer, []) == ()


@pytest.mark.parametrize(
    "decoder",
    [
        decoders.Metaspace(),
        decoders.Metaspace(prepend_scheme="never"),
        decoders.WordPiece(cleanup=False),
        decoders.Sequence([decoders.Strip("b", 1, 0), decoders.Replace("▁", "__")]),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 2, 1)]),
    ],
)
def test_other_decoders_agree_with_their_library(decoder: Any) -> None:
    tokenizer = byte_fallback(decoder)
    ids = [259, 259, 262, 261, 260, 262, 2, 261, 259]
    assert b"".join(token_pieces(tokenizer, ids)).decode() == decoded(tokenizer, ids)
