"""Facts about a tokenizer: its whole definition, its template, its special ids. Knows nothing of prompts."""

from __future__ import annotations

import json
from typing import Any

from driftpin.canonical import digest_of, sha256_hex
from driftpin.environment.fact import Fact, Unknown
from runner.capture.reading import known_or_unknown

STATE = ("padding", "truncation")  # left behind by the last call, no part of the definition
SPECIAL = ("bos", "eos", "pad", "unk")


def tokenizer_facts(tokenizer: Any) -> dict[str, Fact]:
    """`tokenizer.backend`, `tokenizer.special`, and `template` (None where there is none)."""
    return {
        "tokenizer.backend": known_or_unknown(lambda: _backend(tokenizer)),
        "tokenizer.special": {name: getattr(tokenizer, f"{name}_token_id", None) for name in SPECIAL},
        "template": _template(getattr(tokenizer, "chat_template", None)),
    }


def tokenizer_class(tokenizer: Any) -> dict[str, Fact]:
    """`tokenizer.class`, a fact of the stack: transformers 4 and 5 load one definition by different classes."""
    return {"tokenizer.class": type(tokenizer).__name__}


def _backend(tokenizer: Any) -> Fact:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return Unknown("the tokenizer is not of the `tokenizers` library, so it has no one definition")
    definition = json.loads(backend.to_str())
    # not RFC 8785: scores of unigram models would go through its float format for nothing
    kept = {k: v for k, v in definition.items() if k not in STATE and not (k == "post_processor" and _adds_nothing(v))}
    return sha256_hex(json.dumps(kept, sort_keys=True).encode())


def _adds_nothing(post_processor: dict[str, Any] | None) -> bool:
    """None, or the template without special tokens that transformers 5 puts where 4 has none."""
    return post_processor is None or post_processor.get("special_tokens") == {}


def _template(template: Any) -> Fact:
    if template is None:
        return None
    return sha256_hex(template.encode()) if isinstance(template, str) else digest_of(template)
