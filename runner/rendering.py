"""From a canary to prompt ids: template, then tokenise without special tokens. Knows tokenizers, no model.

A template may ask for the time (`strftime_now`); it is then rendered under the suite's clock or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import Any

from jinja2.exceptions import TemplateError
from transformers.utils import chat_template_utils

from driftpin.errors import CannotMeasureError, SuiteError
from driftpin.suite.canary import Canary
from runner.engines.protocol import Rendered
from runner.pieces import token_pieces

__all__ = ["bos_count", "pinned_clock", "render", "token_pieces"]

# two moments that differ in every field that strftime can print, weekday, half of day and century included
EARLY, LATE = datetime(1999, 2, 3, 4, 5, 6, 7), datetime(2032, 11, 20, 17, 38, 49, 123456)
NO_TEMPLATE_REMEDY = "Give the canary a raw `prompt` instead of `messages`."
CLOCK_REMEDY = 'Declare a fixed one in the suite, for example clock: "2026-01-01T12:00:00".'


def render(tokenizer: Any, canary: Canary, clock: str | None) -> Rendered:
    """Text and ids of a canary's prompt; a raw prompt is tokenised as given.

    Raises `SuiteError` for messages without a usable template, a template that needs a clock the suite does not
    declare, text that cannot be encoded, and a prompt without tokens.
    """
    text = canary.prompt if canary.prompt is not None else _chat_text(tokenizer, canary, clock)
    ids = _tokenise(tokenizer, canary, text)
    if not ids:
        raise SuiteError(f"The prompt of canary {canary.id} has no tokens.", remedy="Give it at least one character.")
    return Rendered(text=text, ids=ids)


def bos_count(tokenizer: Any, ids: Sequence[int]) -> int:
    """How many begin-of-sequence tokens the prompt starts with; 2 means that template and tokenizer both added one."""
    bos, count = tokenizer.bos_token_id, 0
    while bos is not None and count < len(ids) and ids[count] == bos:
        count += 1
    return count


@contextmanager
def pinned_clock(moment: datetime) -> Iterator[None]:
    """Within it, chat templates see `moment` as now. Only the name that transformers' template helper reads is changed.

    Compiled templates are cached, but look the name up at each call.
    """
    original = getattr(chat_template_utils, "datetime", None)
    if original is None:
        raise CannotMeasureError(
            "The installed transformers reads the clock of chat templates in an unknown way.",
            remedy="Use transformers 4.48 to 5.24, or raw prompts.",
        )
    vars(chat_template_utils)["datetime"] = _clock_class(moment)
    try:
        yield
    finally:
        vars(chat_template_utils)["datetime"] = original


def _clock_class(moment: datetime) -> type[datetime]:
    class Clock(datetime):
        """A clock that stands still."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return moment if tz is None else moment.astimezone(tz)

    return Clock


def _chat_text(tokenizer: Any, canary: Canary, clock: str | None) -> str:
    if clock is not None:
        return _template(tokenizer, canary, _moment(clock))
    early, late = (_template(tokenizer, canary, moment) for moment in (EARLY, LATE))
    if early != late:
        raise SuiteError(f"The chat template puts the current time into canary {canary.id}.", remedy=CLOCK_REMEDY)
    return early


def _moment(clock: str) -> datetime:
    try:
        return datetime.fromisoformat(clock)
    except ValueError as error:
        raise SuiteError(f"The suite's clock {clock!r} is not an ISO 8601 time.", remedy=CLOCK_REMEDY) from error


def _template(tokenizer: Any, canary: Canary, moment: datetime) -> str:
    if not getattr(tokenizer, "chat_template", None):
        raise SuiteError(f"The model of canary {canary.id} has no chat template.", remedy=NO_TEMPLATE_REMEDY)
    messages = [{"role": message.role, "content": message.content} for message in canary.messages]
    try:
        with pinned_clock(moment):
            text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except (TemplateError, ValueError, TypeError) as error:  # what templates raise, on purpose and otherwise
        raise SuiteError(
            f"The chat template refuses canary {canary.id}: {error}.",
            remedy="Change its messages to what the template takes, or use a raw `prompt`.",
        ) from error
    return text


def _tokenise(tokenizer: Any, canary: Canary, text: str) -> tuple[int, ...]:
    try:
        text.encode("utf-8")  # lone surrogates: the tokenizer would complain about a wrong type
    except UnicodeEncodeError as error:
        raise SuiteError(
            f"The prompt of canary {canary.id} is not valid Unicode: {error.reason}.",
            remedy="Remove the lone surrogates.",
        ) from error
    return tuple(int(i) for i in tokenizer(text, add_special_tokens=False)["input_ids"])
