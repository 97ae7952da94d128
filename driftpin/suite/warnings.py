"""What a valid suite does not cover, or what makes it slow, seen without a model. Advice, never an error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from driftpin.suite.canary import Canary, CheckKind, Suite
from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.suite.pattern import compile_pattern

CHARACTERS_PER_TOKEN = 4  # of English under a vocabulary of about 50,000
LONG_PROMPT = 256  # tokens: beyond, several kernels pick other block sizes
MANY_TOKENS = 2_000  # generated per replay: over a minute for a small model on two cores
FEW_CANARIES = 8  # 2^-8 is below the half percent that each of two sign tests has: see driftpin.verdict.evidence

_gap = partial(Finding, kind=FindingKind.GAP, level=Level.WARNING)
_slowness = partial(Finding, kind=FindingKind.SLOW, level=Level.WARNING)


def suite_findings(suite: Suite) -> tuple[Finding, ...]:
    """Everything that can be said of a suite without a model; empty where nothing stands out."""
    return (*_gaps(suite), *_slow(suite), *_twins(suite), *_unchecked(suite))


def suite_warnings(suite: Suite) -> tuple[str, ...]:
    """The sentences of the findings that ask for a change."""
    return tuple(found.sentence for found in suite_findings(suite) if found.level is Level.WARNING)


def estimated_tokens(canary: Canary) -> int:
    """Prompt tokens, roughly: a quarter token per ASCII character, one per any other."""
    text = _text(canary)
    ascii_characters = sum(character.isascii() for character in text)
    return ascii_characters // CHARACTERS_PER_TOKEN + len(text) - ascii_characters


def _text(canary: Canary) -> str:
    return canary.prompt if canary.prompt is not None else "\n".join(m.content for m in canary.messages)


def _gaps(suite: Suite) -> Iterator[Finding]:
    texts = [_text(canary) for canary in suite.canaries]
    if not any(estimated_tokens(canary) > LONG_PROMPT for canary in suite.canaries):
        yield _gap(
            sentence=f"No prompt is clearly longer than {LONG_PROMPT} tokens: what only long ones show stays unseen.",
            remedy=f"Add a prompt of about {LONG_PROMPT * 5 // 4 * CHARACTERS_PER_TOKEN:,} characters.",
        )
    if not any(character.isdigit() for text in texts for character in text):
        yield _gap(
            sentence="No prompt holds digits: tokenizer changes often show in numbers first.",
            remedy="Add a prompt with years, long numbers and a sum.",
        )
    if all(text.isascii() for text in texts):
        yield _gap(
            sentence="No prompt holds anything but ASCII.", remedy="Add a prompt with accents, emoji or Chinese."
        )
    if not any(check.kind is CheckKind.JSON_SCHEMA for canary in suite.canaries for check in canary.checks):
        yield _gap(
            sentence="No canary checks structured output (json_schema).",
            remedy="Add a canary that asks for JSON, with a json_schema check.",
        )
    if len(texts) < FEW_CANARIES:
        yield _gap(
            sentence=f"Fewer than {FEW_CANARIES} canaries: where scores and decodes both move, no sign test can speak.",
            remedy=f"Add canaries until there are {FEW_CANARIES}.",
        )


def _slow(suite: Suite) -> Iterator[Finding]:
    total = sum(canary.settings.max_new_tokens for canary in suite.canaries)
    if total > MANY_TOKENS:
        yield _slowness(
            sentence=f"A replay generates up to {total} tokens: lower max_new_tokens if replays take too long.",
            remedy="A canary rarely needs more than 32 tokens: a change shows early or not at all.",
        )
    for canary in suite.canaries:
        length = canary.settings.max_new_tokens * CHARACTERS_PER_TOKEN
        for check in canary.checks:
            if check.kind is CheckKind.REGEX and compile_pattern(check.value).too_slow(length):
                yield _slowness(
                    sentence=f"Canary {canary.id!r}: regex {check.value!r} will not be tried on an output of full "
                    "length.",
                    remedy="Use fewer unbounded repeats in it, bound them, or lower max_new_tokens.",
                    canaries=(canary.id,),
                )


def _twins(suite: Suite) -> Iterator[Finding]:
    seen: dict[tuple[object, ...], str] = {}
    for canary in suite.canaries:
        twin = seen.setdefault((canary.prompt, canary.messages), canary.id)
        if twin != canary.id:
            yield Finding(
                kind=FindingKind.TWIN,
                level=Level.WARNING,
                sentence=f"Canaries {twin!r} and {canary.id!r} have the same prompt.",
                remedy="Remove one, or change its prompt: a twin costs a run and shows nothing of its own.",
                canaries=(twin, canary.id),
            )


def _unchecked(suite: Suite) -> Iterator[Finding]:
    bare = tuple(canary.id for canary in suite.canaries if not canary.checks)
    if bare:
        yield Finding(
            kind=FindingKind.UNCHECKED,
            level=Level.NOTE,
            sentence=f"{len(bare)} of {len(suite.canaries)} canaries have no check: a change of theirs is seen in "
            "tokens and numbers, not as right or wrong.",
            remedy="Add a check (json_schema, regex, contains or exact) where the output has a right answer.",
            canaries=bare,
        )
