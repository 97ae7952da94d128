"""A suite from a log of OpenAI-style requests. Says what it left out and why. Knows nothing of models.

A line is a request body, or wraps one under `request` or `body` (batch files: `custom_id`, `body`). Only text is kept:
a canary is greedy by design, so sampling settings are dropped and named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftpin.canonical import digest_of
from driftpin.errors import CanonicalError, SuiteError
from driftpin.suite.canary import Canary, CanarySettings, Check, CheckKind, Message, Suite
from driftpin.suite.dump import dump_suite
from driftpin.suite.form import MAX_NEW_TOKENS
from driftpin.suite.schema import UnusableSchemaError, accept_schema, as_doubles

__all__ = ["ImportReport", "dump_suite", "import_requests"]  # what is imported is next written

WRAPPERS = ("request", "body")
LIMITS = ("max_completion_tokens", "max_tokens")
ROLES = ("system", "developer", "user", "assistant")
TEXT_PARTS = ("text", "input_text")
TOOLS = ("tools", "functions")
# What says nothing about the output; everything else that is not used is reported as dropped.
SILENT = {"model", "messages", "prompt", "user", "stream", "stream_options", "metadata", "store", "service_tier"}


class _SkippedError(ValueError):
    """This line makes no canary; the message says why."""


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """The suite, the lines that made no canary with the reason, and the names of settings that were dropped."""

    suite: Suite
    skipped: tuple[tuple[int, str], ...]
    dropped_settings: tuple[str, ...]


def import_requests(path: Path) -> ImportReport:
    """Read a JSON-lines log; raises `SuiteError` where it cannot be read or holds no usable request.

    Ids come from the prompt alone (`req-` and 12 hex digits of its digest), so that two exports of one log agree.
    """
    canaries: dict[str, Canary] = {}
    lines: dict[str, int] = {}
    skipped: list[tuple[int, str]] = []
    dropped: set[str] = set()
    for number, raw in _raw_lines(path):
        try:
            canary, unused = _canary(raw)
        except _SkippedError as reason:
            skipped.append((number, str(reason)))
            continue
        dropped |= unused
        if canary.id in canaries:
            skipped.append((number, f"the same prompt as line {lines[canary.id]}"))
            continue
        canaries[canary.id], lines[canary.id] = canary, number
    if not canaries:
        raise _nothing(path, skipped)
    suite = Suite(name=_name(path), canaries=tuple(canaries.values()))
    names = {name.encode("utf-8", "backslashreplace").decode("utf-8") for name in dropped}  # they will be printed
    return ImportReport(suite=suite, skipped=tuple(skipped), dropped_settings=tuple(sorted(names)))


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SuiteError(
            f"The request log {path} cannot be read: {error.strerror}.", remedy="Check the path."
        ) from error
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if raw.strip():
            yield number, raw


def _canary(raw: bytes) -> tuple[Canary, set[str]]:
    line = _object(raw)
    body = _body(line)
    prompt, messages, lost = _input(body)
    limit, used = _limit(body)
    checks, refused = _checks(body)
    identity = prompt if prompt is not None else [[m.role, m.content] for m in messages]
    try:
        name = f"req-{digest_of(identity)[:12]}"
    except CanonicalError as error:
        raise _SkippedError("it holds a lone surrogate, which is no text") from error
    custom = line.get("custom_id")
    canary = Canary(
        id=name,
        prompt=prompt,
        messages=messages,
        settings=CanarySettings(max_new_tokens=limit),
        checks=checks,
        comment=f"custom_id {custom}" if isinstance(custom, str) and _is_text(custom) else "",
    )
    unused = {key for key, value in body.items() if value is not None and key not in SILENT | used | set(TOOLS)}
    return canary, unused | lost | refused


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _SkippedError(f"not valid UTF-8 at byte {error.start} of the line") from error
    except RecursionError as error:
        raise _SkippedError("its JSON is nested too deeply") from error
    except ValueError as error:
        raise _SkippedError(f"not valid JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise _SkippedError("not a JSON object")
    return value


def _body(line: Mapping[str, Any]) -> Mapping[str, Any]:
    for wrapper in WRAPPERS:
        inner = line.get(wrapper)
        if isinstance(inner, str):  # gateways log the body as text
            inner = _object(inner.encode("utf-8", "surrogatepass"))
        if isinstance(inner, Mapping):
            return _body(inner)
    return line


def _input(body: Mapping[str, Any]) -> tuple[str | None, tuple[Message, ...], set[str]]:
    """Prompt or messages, and the names of message fields that were lost."""
    tools = next((key for key in TOOLS if body.get(key)), None)
    if tools:
        raise _SkippedError(f"it offers {tools}, which a canary cannot")
    if body.get("suffix"):
        raise _SkippedError("it asks for text between a prompt and a suffix")
    if body.get("messages") is not None:
        messages = _messages(body["messages"])
        return None, messages, _lost(body["messages"])
    if "prompt" in body:
        return _prompt(body["prompt"]), (), set()
    raise _SkippedError("it has neither messages nor prompt")


def _prompt(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        raise _SkippedError("its prompt is a list of token ids or of several prompts")
    if not isinstance(value, str):
        raise _SkippedError("its prompt is not text")
    if not value:
        raise _SkippedError("its prompt is empty")
    return value


def _messages(value: Any) -> tuple[Message, ...]:
    if not isinstance(value, list) or not all(isinstance(message, Mapping) for message in value):
        raise _SkippedError("its messages are not a list of objects")
    messages = tuple(_message(message) for message in value)
    if not any(message.content for message in messages):
        raise _SkippedError("its messages hold no text")
    return messages


def _message(value: Mapping[str, Any]) -> Message:
    role = value.get("role")
    if value.get("tool_calls") or value.get("function_call") or role in ("tool", "function"):
        raise _SkippedError("it holds tool calls")
    if role not in ROLES:
        raise _SkippedError(f"it has a message with the role {role!r}")
    return Message(role=role, content=_content(value.get("content")))


def _content(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise _SkippedError("it has a message without text")
    return "\n".join(_part(part) for part in value)


def _part(value: Any) -> str:
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind in TEXT_PARTS and isinstance(value.get("text"), str):
        return str(value["text"])
    raise _SkippedError(f"it holds a content part of type {kind!r}, only text is replayed")


def _lost(messages: list[Mapping[str, Any]]) -> set[str]:
    kept = ("role", "content")
    return {f"messages.{key}" for m in messages for key, value in m.items() if key not in kept and value}


def _limit(body: Mapping[str, Any]) -> tuple[int, set[str]]:
    """Tokens to generate, and which settings were followed in full."""
    for key in LIMITS:
        value = body.get(key)
        if type(value) is int and value >= 1:
            return min(value, MAX_NEW_TOKENS), {key} if value <= MAX_NEW_TOKENS else set()
    return CanarySettings().max_new_tokens, set()


def _checks(body: Mapping[str, Any]) -> tuple[tuple[Check, ...], set[str]]:
    """A JSON schema that the request demanded becomes a check; nothing constrains the output to it, hence dropped."""
    wanted = body.get("response_format")
    inner = wanted.get("json_schema") if isinstance(wanted, Mapping) else None
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    if not isinstance(schema, dict):
        return (), set()
    try:
        accept_schema(schema)
        schema = as_doubles(schema)
        digest_of(schema)
    except (UnusableSchemaError, CanonicalError):
        return (), {"response_format.json_schema"}
    return (Check(kind=CheckKind.JSON_SCHEMA, value=schema),), set()


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _name(path: Path) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-") or "imported"


def _nothing(path: Path, skipped: list[tuple[int, str]]) -> SuiteError:
    reasons = "".join(f" Line {number}: {reason}." for number, reason in skipped[:3])
    return SuiteError(
        f"{path} holds no request that can be replayed.{reasons or ' It is empty.'}",
        remedy="Each line must be a JSON request body with messages or prompt, alone or under `request` or `body`.",
    )
