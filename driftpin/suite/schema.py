"""The shape of a suite's file: keys and types, strict. Knows no file."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from driftpin.suite.canary import Canary, CanarySettings, Check, CheckKind, Message

LONGEST = 4096  # tokens a canary may ask for
ID = r"^[a-z0-9][a-z0-9._-]{0,63}$"


def _no_surrogates(text: str) -> str:
    for index, character in enumerate(text):
        if 0xD800 <= ord(character) <= 0xDFFF:
            raise ValueError(f"holds the lone surrogate U+{ord(character):04X} at character {index}; remove it")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return text


def _schema(value: dict[str, Any]) -> dict[str, Any]:
    import jsonschema  # noqa: PLC0415 - slow to import, needed for suites with schemas only

    try:
        jsonschema.validators.validator_for(value).check_schema(value)
    except jsonschema.exceptions.SchemaError as error:
        raise ValueError(f"is not a JSON schema: {error.message}") from error
    if remote := next(_remote_references(value), None):
        raise ValueError(f"refers to {remote!r}; only references within the schema (#…) are followed")
    return value


def _remote_references(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str) and not reference.startswith("#"):
            yield reference
        for part in value.values():
            yield from _remote_references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _remote_references(part)


Text = Annotated[str, AfterValidator(_no_surrogates)]


class Strict(BaseModel):
    """No unknown keys, no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class MessageShape(Strict):
    """One turn."""

    role: Annotated[Text, Field(min_length=1)]
    content: Text

    def value(self) -> Message:
        """As the kernel's value."""
        return Message(role=self.role, content=self.content)


class CheckShape(Strict):
    """Exactly one kind per check."""

    json_schema: Annotated[dict[str, Any], AfterValidator(_schema)] | None = None
    regex: Annotated[Text, AfterValidator(_pattern)] | None = None
    contains: Annotated[Text, Field(min_length=1)] | None = None
    exact: Text | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> CheckShape:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"needs exactly one of {', '.join(CheckKind)}")
        return self

    def value(self) -> Check:
        """As the kernel's value."""
        (name,) = self.model_fields_set
        return Check(kind=CheckKind(name), value=getattr(self, name))


class SettingsShape(Strict):
    """Generation settings; what is not given comes from the suite's defaults."""

    max_new_tokens: Annotated[int, Field(ge=1, le=LONGEST)] | None = None


class CanaryShape(Strict):
    """One canary."""

    id: Annotated[str, Field(pattern=ID)]
    prompt: Annotated[Text, Field(min_length=1)] | None = None
    messages: Annotated[list[MessageShape], Field(min_length=1)] | None = None
    settings: SettingsShape = Field(default_factory=SettingsShape)
    checks: list[CheckShape] = Field(default_factory=list)
    comment: Text = ""

    @model_validator(mode="after")
    def _one_prompt(self) -> CanaryShape:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("needs either prompt or messages")
        return self

    def value(self, defaults: SettingsShape) -> Canary:
        """As the kernel's value."""
        tokens = self.settings.max_new_tokens or defaults.max_new_tokens
        return Canary(
            id=self.id,
            prompt=self.prompt,
            messages=tuple(message.value() for message in self.messages or ()),
            settings=CanarySettings(max_new_tokens=tokens) if tokens else CanarySettings(),
            checks=tuple(check.value() for check in self.checks),
            comment=self.comment,
        )


class SuiteShape(Strict):
    """Everything but the canaries, which are validated one by one so that an error names its canary."""

    name: Annotated[Text, Field(min_length=1)]
    clock: Text | None = None
    defaults: SettingsShape = Field(default_factory=SettingsShape)
    canaries: Annotated[list[Any], Field(min_length=1)]
