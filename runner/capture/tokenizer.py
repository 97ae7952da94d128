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
    """`tokenizer.backend`, `tokenizer.class`, `tokenizer.special`, and `template` (None where there is none)."""
    return {
        "tokenizer.backend": known_or_unknown(lambda: _backend(tokenizer)),
        "tokenizer.class": type(tokenizer).__name__,
        "tokenizer.special": {name: getattr(tokenizer, f"{name}_token_id", None) for name in SPECIAL},
        "template": _template(getattr(tokenizer, "chat_template", None)),
    }


def _backend(tokenizer: Any) -> Fact:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return Unknown("the tokenizer is not of the `tokenizers` library, so it has no one definition")
    definition = json.loads(backend.to_str())
    # not RFC 8785: scores of unigram models would go through its float format for nothing
    text = json.dumps({k: v for k, v in definition.items() if k not in STATE}, sort_keys=True)
    return sha256_hex(text.encode())


def _template(template: Any) -> Fact:
    if template is None:
        return None
    return sha256_hex(template.encode()) if isinstance(template, str) else digest_of(template)
