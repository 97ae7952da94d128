"""What a valid suite does not cover, or what makes it slow, seen without a model. Advice, never an error."""

from __future__ import annotations

from collections.abc import Iterator

from driftpin.suite.canary import Canary, CheckKind, Suite
from driftpin.suite.pattern import compile_pattern

CHARACTERS_PER_TOKEN = 4  # of English under a vocabulary of about 50,000
LONG_PROMPT = 256  # tokens: beyond, several kernels pick other block sizes
MANY_TOKENS = 2_000  # generated per replay: over a minute for a small model on two cores
FEW_CANARIES = 5


def suite_warnings(suite: Suite) -> tuple[str, ...]:
    """One sentence per gap; empty where nothing stands out."""
    return (*_gaps(suite), *_slow(suite), *_twins(suite))


def estimated_tokens(canary: Canary) -> int:
    """Prompt tokens, roughly: a quarter token per ASCII character, one per any other."""
    text = _text(canary)
    ascii_characters = sum(character.isascii() for character in text)
    return ascii_characters // CHARACTERS_PER_TOKEN + len(text) - ascii_characters


def _text(canary: Canary) -> str:
    return canary.prompt if canary.prompt is not None else "\n".join(m.content for m in canary.messages)


def _gaps(suite: Suite) -> Iterator[str]:
    texts = [_text(canary) for canary in suite.canaries]
    if not any(estimated_tokens(canary) > LONG_PROMPT for canary in suite.canaries):
        yield f"No prompt is clearly longer than {LONG_PROMPT} tokens: what only long prompts show stays unseen."
    if not any(character.isdigit() for text in texts for character in text):
        yield "No prompt holds digits: tokenizer changes often show in numbers first."
    if all(text.isascii() for text in texts):
        yield "No prompt holds anything but ASCII."
    if not any(check.kind is CheckKind.JSON_SCHEMA for canary in suite.canaries for check in canary.checks):
        yield "No canary checks structured output (json_schema)."
    if len(texts) < FEW_CANARIES:
        yield f"Fewer than {FEW_CANARIES} canaries: a sign test over canaries cannot become significant."


def _slow(suite: Suite) -> Iterator[str]:
    total = sum(canary.settings.max_new_tokens for canary in suite.canaries)
    if total > MANY_TOKENS:
        yield f"A replay generates up to {total} tokens: lower max_new_tokens if replays take too long."
    for canary in suite.canaries:
        length = canary.settings.max_new_tokens * CHARACTERS_PER_TOKEN
        for check in canary.checks:
            if check.kind is CheckKind.REGEX and compile_pattern(check.value).too_slow(length):
                yield f"Canary {canary.id!r}: regex {check.value!r} will not be tried on an output of full length."


def _twins(suite: Suite) -> Iterator[str]:
    seen: dict[tuple[object, ...], str] = {}
    for canary in suite.canaries:
        twin = seen.setdefault((canary.prompt, canary.messages), canary.id)
        if twin != canary.id:
            yield f"Canaries {twin!r} and {canary.id!r} have the same prompt."
