"""The form of a suite document: which fields exist and what they may hold. Knows nothing of files.

Strict on purpose. YAML reads an unquoted `2024`, `yes` or `12:30` as a number or a truth value; turned back into text
they would be another prompt than the author typed, so they are refused with the advice to quote.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from driftpin.suite.canary import Canary, CanarySettings, Check, CheckKind, Message
from driftpin.suite.pattern import PatternError, compile_pattern
from driftpin.suite.schema import UnusableSchemaError, accept_schema, as_doubles

MAX_NEW_TOKENS = 4096
ID_PATTERN = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
ID_RULE = "lower-case letters, digits, '.', '_' and '-', at most 64, beginning with a letter or digit"


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class SettingsForm(_Form):
    """Generation settings; what is not given comes from the suite's `defaults`."""

    max_new_tokens: Annotated[int, Field(ge=1, le=MAX_NEW_TOKENS)] | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _given(cls, value: Any) -> Any:
        return _not_null(value)


class MessageForm(_Form):
    """One turn of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str


def _check(value: dict[str, Any]) -> Check:
    if len(value) != 1:
        raise ValueError(f"a check is one kind and its value, this has {len(value)} fields")
    [(name, content)] = value.items()
    if name not in set(CheckKind):
        raise ValueError(f"unknown check kind {name!r}; known are {', '.join(CheckKind)}")
    kind = CheckKind(name)
    if kind is CheckKind.JSON_SCHEMA:
        _accept(accept_schema, content)
        content = as_doubles(content)
    elif not isinstance(content, str):
        raise ValueError(f"{name}: {_quote_advice(content)}")
    elif not content:
        raise ValueError(f"{name}: the text is empty, which every output satisfies or none")
    elif kind is CheckKind.REGEX:
        _accept(compile_pattern, content)
    return Check(kind=kind, value=content)


def _accept(accept: Any, content: Any) -> None:
    try:
        accept(content)
    except (PatternError, UnusableSchemaError) as error:
        raise ValueError(f"{'regex' if accept is compile_pattern else 'json_schema'}: {error}") from error


class CanaryForm(_Form):
    """One canary as written."""

    id: str
    prompt: str | None = None
    messages: list[MessageForm] | None = None
    settings: SettingsForm = SettingsForm()
    checks: list[Annotated[dict[str, Any], AfterValidator(_check)]] = Field(default_factory=list)
    comment: str = ""

    @field_validator("prompt", "messages", mode="before")
    @classmethod
    def _given(cls, value: Any) -> Any:
        return _not_null(value)

    @field_validator("id")
    @classmethod
    def _id(cls, value: str) -> str:
        if not ID_PATTERN.fullmatch(value):
            raise ValueError(f"{value!r} is not an id: {ID_RULE}")
        return value

    @field_validator("prompt")
    @classmethod
    def _prompt(cls, value: str | None) -> str | None:
        if value == "":
            raise ValueError("the prompt is empty")
        return value

    @field_validator("messages")
    @classmethod
    def _messages(cls, value: list[MessageForm] | None) -> list[MessageForm] | None:
        if value is not None and not any(message.content for message in value):
            raise ValueError("the prompt is empty: no message has any content")
        return value

    @model_validator(mode="after")
    def _one_prompt(self) -> CanaryForm:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError(f"give exactly one of prompt and messages; it has {_count(self.prompt)}")
        return self

    def canary(self, defaults: SettingsForm) -> Canary:
        """The frozen value."""
        tokens = self.settings.max_new_tokens or defaults.max_new_tokens or CanarySettings().max_new_tokens
        return Canary(
            id=self.id,
            prompt=self.prompt,
            messages=tuple(Message(role=m.role, content=m.content) for m in self.messages or ()),
            settings=CanarySettings(max_new_tokens=tokens),
            checks=tuple(self.checks),  # type: ignore[arg-type]  # dicts on the way in, `Check` after validation
            comment=self.comment,
        )


class SuiteForm(_Form):
    """The suite around its canaries, which are validated one by one so that each error can name its canary."""

    name: Annotated[str, Field(min_length=1)]
    clock: str | None = None
    defaults: SettingsForm = SettingsForm()
    canaries: list[Any]

    @field_validator("clock")
    @classmethod
    def _clock(cls, value: str | None, _: ValidationInfo) -> str | None:
        if value is not None:
            try:
                datetime.fromisoformat(value)
            except ValueError as error:
                raise ValueError(f"{value!r} is not an ISO time such as '2026-01-15T12:00:00+00:00'") from error
        return value

    @field_validator("canaries")
    @classmethod
    def _some(cls, value: list[Any]) -> list[Any]:
        if not value:
            raise ValueError("the suite has no canary")
        return value


def _count(prompt: str | None) -> str:
    return "neither" if prompt is None else "both"


def _not_null(value: Any) -> Any:
    if value is None:
        raise ValueError(_quote_advice(value))
    return value


def _quote_advice(value: Any) -> str:
    return f"must be text, but was read as {_read_as(value)}; put it in quotes"


def _read_as(value: Any) -> str:
    names = {bool: "the truth value", int: "the number", float: "the number"}
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"{names.get(type(value), 'the ' + type(value).__name__)} {value!s}"


def sentence(error: dict[str, Any], form: type[BaseModel]) -> str:
    """One pydantic error in our words, without its place."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_type":
        return _quote_advice(error["input"])
    if kind == "extra_forbidden":
        return f"unknown field{_hint(error['loc'][-1])}; known are {', '.join(_known(error['loc'], form))}"
    if kind in ("greater_than_equal", "less_than_equal"):
        return f"must be from 1 to {MAX_NEW_TOKENS}, is {error['input']}"
    if kind == "literal_error":
        return f"must be one of {context['expected']}, is {error['input']!r}"
    plain = {
        "missing": "is missing",
        "int_type": "must be a whole number",
        "list_type": "must be a list",
        "dict_type": "must be a mapping",
        "model_type": "must be a mapping",
        "model_attributes_type": "must be a mapping",
        "string_too_short": "is empty",
    }
    return plain.get(kind, str(error["msg"]))


def _hint(name: Any) -> str:
    return " (it belongs under settings)" if name in SettingsForm.model_fields else ""


def _known(place: tuple[Any, ...], form: type[BaseModel]) -> list[str]:
    inner: dict[str, type[BaseModel]] = {"settings": SettingsForm, "defaults": SettingsForm, "messages": MessageForm}
    return list(inner.get(str(place[0]) if len(place) > 1 else "", form).model_fields)
