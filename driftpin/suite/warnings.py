"""What a suite does not cover, seen without a model. Advice, never an error."""

from __future__ import annotations

from driftpin.suite.canary import Canary, CheckKind, Suite

CHARACTERS_PER_TOKEN = 4  # of English prose, roughly
LONG_PROMPT = 256  # tokens: beyond, several kernels pick other block sizes


def suite_warnings(suite: Suite) -> tuple[str, ...]:
    """One sentence per gap."""
    texts = [_text(canary) for canary in suite.canaries]
    gaps = {
        f"No prompt is clearly longer than {LONG_PROMPT} tokens.": all(
            len(text) < LONG_PROMPT * CHARACTERS_PER_TOKEN for text in texts
        ),
        "No prompt holds digits: tokenizer changes often show in numbers first.": not any(
            any(c.isdigit() for c in text) for text in texts
        ),
        "No prompt holds anything but ASCII.": all(text.isascii() for text in texts),
        "No canary checks structured output (json_schema).": not any(
            check.kind is CheckKind.JSON_SCHEMA for canary in suite.canaries for check in canary.checks
        ),
        "Fewer than 5 canaries: a sign test over canaries cannot become significant.": len(texts) < 5,
    }
    return tuple(sentence for sentence, holds in gaps.items() if holds)


def _text(canary: Canary) -> str:
    return canary.prompt if canary.prompt is not None else "\n".join(m.content for m in canary.messages)
