"""The tables of `driftpin.toml`: keys, types, defaults. Knows nothing of files, of other tables, or of precedence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationInfo, model_validator

from driftpin.canonical import canonical_json
from driftpin.errors import CanonicalError
from driftpin.settings.grade import Grade
from driftpin.settings.policy import CONFIRMATIONS, DEFAULT_POLICY, SUBJECTS, Severity
from driftpin.settings.quantity import bytes_of, seconds_of
from driftpin.settings.recipe import Sampling
from driftpin.settings.secret import LITERAL, Secret, secret_from

DEFAULT_STORE = "sqlite:///driftpin.db"
LOG = "log"  # the channel that is always there


def _secret(value: Any, info: ValidationInfo) -> Secret:
    return secret_from(value, (info.context or {}).get("environ", {}))


def _url_or_secret(value: Any, info: ValidationInfo) -> str | Secret:
    if isinstance(value, dict):
        return _secret(value, info)
    parts = _split(value) if isinstance(value, str) else None
    if not isinstance(value, str) or parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError('must be an address that begins with "https://" or "http://", or a secret')
    return _without_password(value)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        # Its message quotes the part that holds user and password.
        raise ValueError("is no usable address") from None


def _without_password(url: str) -> str:
    parts = _split(url)
    if parts.password or any(name.lower() == "password" and value for name, value in parse_qsl(parts.query)):
        raise ValueError(f"holds a password, which {LITERAL}")
    return url


def _store_url(url: str) -> str:
    if not re.match(r"(sqlite|postgresql)(\+\w+)?://", url):
        raise ValueError('must begin with "sqlite:///" or "postgresql://"')
    return _without_password(url)


def _cron(text: str) -> str:
    fields = text.split()
    if len(fields) != 5 or not all(re.fullmatch(r"[0-9A-Za-z*/,\-?#]+", part) for part in fields):
        raise ValueError('must be five fields like "0 * * * *": minute, hour, day, month, weekday (UTC)')
    return text


def _commit(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text):
        raise ValueError("must be a full commit, 40 hex digits: a branch or a tag can move")
    return text


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    try:
        canonical_json(table)
    except CanonicalError:
        raise ValueError("may hold texts, finite numbers, true and false, lists and tables only") from None
    return table


def _once(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("names something twice")
    return values


def _some(values: tuple[str, ...]) -> tuple[str, ...]:
    # Not `min_length`: pydantic counts valid items only, and would call a list with one bad word empty.
    if not values:
        raise ValueError("must not be empty")
    return _once(values)


Text = Annotated[str, Field(min_length=1)]
SecretRef = Annotated[Secret, PlainValidator(_secret)]
Seconds = Annotated[int, PlainValidator(seconds_of)]
Bytes = Annotated[int, PlainValidator(bytes_of)]
FreeTable = Annotated[dict[str, Any], AfterValidator(_plain)]
Subject = Literal[SUBJECTS]  # type: ignore[valid-type]  # one list of words, kept in policy.py
Loudness = Annotated[Severity, Field(strict=False)]
Dtype = Literal["float32", "bfloat16", "float16"]
ProbeName = Literal["decode", "score"]
ShapeName = Literal["alone", "filled", "padded"]
Names = Annotated[tuple[Text, ...], Field(strict=False), AfterValidator(_once)]


class Table(BaseModel):
    """A table of the file: no unknown keys, no conversions, no changes afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


class StoreTable(Table):
    """Where replays are kept."""

    url: Annotated[str, AfterValidator(_store_url)] = DEFAULT_STORE
    password: SecretRef | None = None


class SuiteTable(Table):
    """A suite: a file, or one that driftpin brings; `text = "hide"` keeps prompts and outputs off every display."""

    path: Text | None = None
    builtin: Text | None = None
    text: Literal["show", "hide"] = "show"


class ModelTable(Table):
    """A model: a folder with its files, and the commit they were taken from."""

    path: Text
    revision: Annotated[str, AfterValidator(_commit)] | None = None
    dtype: Dtype = "float32"
    trust_remote_code: bool = False


class BudgetTable(Table):
    """What one replay may take, and what to do when its device is busy."""

    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120
    when_busy: Literal["skip", "wait"] = "skip"


class QuorumTable(Table):
    """A finding counts when `k` of a canary's `n` repeats show it."""

    k: Annotated[int, Field(ge=1, le=100)] = 2
    n: Annotated[int, Field(ge=1, le=100)] = 3

    @model_validator(mode="after")
    def _reachable(self) -> QuorumTable:
        if self.k > self.n:
            raise ValueError(f"k = {self.k} of n = {self.n} repeats can never be reached")
        return self


class EngineName(StrEnum):
    """What runs a target's model."""

    TRANSFORMERS = "transformers"  # a real model through the library of that name
    FAKE = "fake"  # arithmetic that behaves like a model, for trying things out


class TargetTable(Table):
    """A target: the recipe (hashed) and the operations (not hashed) side by side; `None` means not set."""

    engine: Annotated[EngineName, Field(strict=False)]
    suite: Text
    model: Text | None = None
    dtype: Dtype | None = None  # overrides the model's
    device: Annotated[str, Field(pattern=r"^(cpu|cuda:[0-9]{1,2})$")] = "cpu"
    image: Text | None = None
    sampling: Annotated[Sampling, Field(strict=False)] = Sampling.CLEAN
    generation: FreeTable = Field(default_factory=dict)
    attention: Literal["sdpa", "eager"] = "sdpa"
    sdpa: Literal["math", "flash", "efficient", "cudnn"] = "math"
    cache: Literal["dynamic", "static"] = "dynamic"
    threads: Annotated[int, Field(ge=1, le=4096)] | None = None
    nondeterministic_ops: Literal["refuse", "warn"] = "refuse"
    options: FreeTable = Field(default_factory=dict)
    every: Seconds | None = None
    cron: Annotated[str, AfterValidator(_cron)] | None = None
    grace: Seconds | None = None
    place: Literal["any", "each-class", "each-host", "each-device"] = "any"
    probes: Annotated[tuple[ProbeName, ...], Field(strict=False), AfterValidator(_some)] = (
        "decode",
        "score",
    )
    shapes: Annotated[tuple[ShapeName, ...], Field(strict=False), AfterValidator(_some)] = ("alone",)
    repeats: Annotated[int, Field(ge=3, le=1000)] = 3  # executions per canary at blessing
    budget: BudgetTable = BudgetTable()
    owner: Text | None = None
    policy: Text = DEFAULT_POLICY
    quota: Bytes | None = None
    baseline_of: Text | None = None
    grade: Annotated[Grade, Field(strict=False)] = Grade.BITWISE  # what its repeats repeat: bits, tokens, or neither
    quorum: QuorumTable = QuorumTable()  # asked of targets graded below bitwise only
    reference: Literal["auto", "never"] = "auto"  # the float32 arm beside blessings and changes


class PolicyTable(Table):
    """Departures from the default policy."""

    confirm: Annotated[int, Field(ge=0, le=100)] = CONFIRMATIONS
    same_stack: dict[Subject, Loudness] = Field(default_factory=dict)
    new_stack: dict[Subject, Loudness] = Field(default_factory=dict)


class ChannelTable(Table):
    """Where alerts go; a webhook is signed with `secret` (Standard Webhooks, `whsec_...`) where one is given."""

    kind: Literal["webhook", "log"]
    url: Annotated[str | Secret, PlainValidator(_url_or_secret)] | None = None
    secret: SecretRef | None = None


class RoutesTable(Table):
    """Channels by severity."""

    page: Names = (LOG,)
    ticket: Names = (LOG,)
    info: Names = ()


class MonitorTable(Table):
    """The monitor service itself; `host` replaces the machine's own name in series and alerts."""

    tick_seconds: Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)] = 10
    host: Text | None = None


class Tables(Table):
    """Everything a configuration holds."""

    store: StoreTable = StoreTable()
    suites: Mapping[str, SuiteTable] = Field(default_factory=dict)
    models: Mapping[str, ModelTable] = Field(default_factory=dict)
    targets: Mapping[str, TargetTable] = Field(default_factory=dict)
    policies: Mapping[str, PolicyTable] = Field(default_factory=dict)
    channels: Mapping[str, ChannelTable] = Field(default_factory=dict)
    routes: RoutesTable = RoutesTable()
    monitor: MonitorTable = MonitorTable()
