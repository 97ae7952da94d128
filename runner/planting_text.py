"""Changes of what surrounds a model: generation settings, chat template, tokenizer. Knows their files, no tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from driftpin.errors import ModelError
from runner.planting_folder import GENERATION, copy_model, read, write

TOKENIZER, TOKENIZER_CONFIG, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"


def penalty(source: Path, target: Path, value: float) -> int:
    """Leave a repetition penalty in the generation configuration, as fine-tuning scripts do."""
    copy_model(source, target, GENERATION)
    write(target, GENERATION, read(source, GENERATION) | {"repetition_penalty": value})
    return 1


def template(source: Path, target: Path, words: str) -> int:
    """The chat template ends with more text (by default one space)."""
    return _retemplate(source, target, lambda old: old + "{{ '" + (words or " ") + "' }}")


def system(source: Path, target: Path, words: str) -> int:
    """The chat template begins with a system message of its own."""
    line = words or "Answer in English."
    return _retemplate(source, target, lambda old: "{{ '<|im_start|>system\n" + line + "<|im_end|>\n' }}" + old)


def _retemplate(source: Path, target: Path, change: Callable[[str], str]) -> int:
    """In a file of its own, or in the tokenizer's configuration, wherever the model keeps it."""
    if (source / TEMPLATE).is_file():
        copy_model(source, target, TEMPLATE)
        (target / TEMPLATE).write_text(change((source / TEMPLATE).read_text("utf-8")), "utf-8")
        return 1
    copy_model(source, target, TOKENIZER_CONFIG)
    config = read(source, TOKENIZER_CONFIG)
    if not config.get("chat_template"):
        raise ModelError(f"{source} has no chat template.", remedy="Take a model that brings one.")
    config["chat_template"] = change(config["chat_template"])
    write(target, TOKENIZER_CONFIG, config)
    return 1


def merge(source: Path, target: Path, words: str) -> int:
    """One merge of a byte-pair tokenizer is missing; `words` are its two parts, with a space between."""
    copy_model(source, target, TOKENIZER)
    tokenizer = read(source, TOKENIZER)
    kept = [pair for pair in tokenizer["model"]["merges"] if _joined(pair) != words]
    gone = len(tokenizer["model"]["merges"]) - len(kept)
    if not gone:
        raise ModelError(f"The tokenizer in {source} has no merge {words!r}.", remedy="Name one as 'a b'.")
    tokenizer["model"]["merges"] = kept
    write(target, TOKENIZER, tokenizer)
    return gone


def _joined(pair: list[str] | str) -> str:
    """tokenizers writes a pair as a list since 0.20, as one string before."""
    return pair if isinstance(pair, str) else " ".join(pair)


def normalizer(source: Path, target: Path, words: str) -> int:
    """The tokenizer normalises its text first; `words` is a type of `tokenizers`, by default NFKC."""
    copy_model(source, target, TOKENIZER)
    write(target, TOKENIZER, read(source, TOKENIZER) | {"normalizer": {"type": words or "NFKC"}})
    return 1
