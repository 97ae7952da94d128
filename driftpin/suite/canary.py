"""A canary and a suite as frozen values. Knows nothing of files, models or token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from driftpin.canonical import digest_of


class CheckKind(StrEnum):
    """What a check asks of an output text."""

    JSON_SCHEMA = "json_schema"  # the text is one JSON value that satisfies the schema
    REGEX = "regex"  # the pattern is found somewhere in the text
    CONTAINS = "contains"  # the text holds the string
    EXACT = "exact"  # the text, stripped at both ends, is the string


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question asked of a canary's output text; `value` is a schema (dict) or a string."""

    kind: CheckKind
    value: Any

    def to_json(self) -> dict[str, Any]:
        """The form in suites and in the store."""
        return {self.kind.value: self.value}


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a chat."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class CanarySettings:
    """Generation settings of one canary; they are part of its input digest."""

    max_new_tokens: int = 32

    def to_json(self) -> dict[str, Any]:
        """The form that is hashed."""
        return {"max_new_tokens": self.max_new_tokens}


@dataclass(frozen=True, kw_only=True)
class Canary:
    """One prompt (a chat in `messages` or raw text in `prompt`, exactly one) with its settings and checks."""

    id: str
    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    settings: CanarySettings = field(default_factory=CanarySettings)
    checks: tuple[Check, ...] = ()
    comment: str = ""

    def definition(self) -> dict[str, Any]:
        """What decides the model's input: prompt and settings, neither checks nor comment."""
        body: dict[str, Any] = {"id": self.id, "settings": self.settings.to_json()}
        if self.prompt is not None:
            body["prompt"] = self.prompt
        else:
            body["messages"] = [{"role": m.role, "content": m.content} for m in self.messages]
        return body

    def to_json(self) -> dict[str, Any]:
        """Everything, as stored."""
        extra = {"checks": [check.to_json() for check in self.checks], "comment": self.comment}
        return self.definition() | extra


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A set of canaries in a fixed order; `clock` is the ISO time under which templates render, or None."""

    name: str
    canaries: tuple[Canary, ...]
    clock: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Everything, as stored under the suite's digest."""
        return {"name": self.name, "clock": self.clock, "canaries": [c.to_json() for c in self.canaries]}

    @property
    def digest(self) -> str:
        """The sha256 that names this revision of the suite."""
        return digest_of(self.to_json())

    def canary(self, canary_id: str) -> Canary:
        """The canary with that id; raises KeyError."""
        return self._by_id[canary_id]

    @cached_property
    def _by_id(self) -> dict[str, Canary]:
        return {canary.id: canary for canary in self.canaries}

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids in suite order."""
        return tuple(c.id for c in self.canaries)


def input_digest(prompt_ids: Sequence[int], settings: CanarySettings) -> str:
    """What the model is really asked: prompt ids and settings, hashed; checks and comments do not count."""
    return digest_of({"prompt_ids": list(prompt_ids), "settings": settings.to_json()})
