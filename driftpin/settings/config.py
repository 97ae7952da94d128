"""A valid configuration, and what the rest of driftpin asks of it. Knows nothing of how it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from driftpin.errors import ConfigError
from driftpin.settings.leaves import Leaf
from driftpin.settings.policy import DEFAULT_POLICY, Policy
from driftpin.settings.problem import Key, Problem, error_of, near
from driftpin.settings.recipe import Recipe
from driftpin.settings.schema import LOG, ChannelTable, StoreTable, SuiteTable, Tables, TargetTable

_T = TypeVar("_T")

DEFAULT_GRACE = 45 * 60  # seconds; the grace of a cron schedule
GRACE_SHARE = 0.75  # of `every`, where no grace is given: 45 minutes of an hour


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that `driftpin.toml`, the environment and flags say; `written` holds values as they were given."""

    path: Path
    tables: Tables
    written: Mapping[Key, Leaf] = field(repr=False)

    @property
    def store(self) -> StoreTable:
        """Address (sqlite paths absolute) and password of the store."""
        return self.tables.store

    @property
    def targets(self) -> Mapping[str, TargetTable]:
        """Targets by name."""
        return self.tables.targets

    @property
    def channels(self) -> Mapping[str, ChannelTable]:
        """Channels by name, the log that is always there included."""
        return {LOG: ChannelTable(kind="log"), **self.tables.channels}

    def target(self, name: str) -> TargetTable:
        """One target; `ConfigError` with near names when there is none."""
        return _named(self.tables.targets, name, "target", self.path)

    def suite(self, name: str) -> SuiteTable:
        """One suite's table; `ConfigError` when there is none."""
        return _named(self.tables.suites, name, "suite", self.path)

    def suite_of(self, target: str) -> str:
        """The name of a target's suite."""
        return self.target(target).suite

    def suite_path(self, name: str) -> Path | None:
        """The suite's file, absolute; None for one that driftpin brings (its name is `suite(name).builtin`)."""
        path = self.suite(name).path
        return Path(path) if path is not None else None

    def store_url(self) -> str:
        """The store's address with its password, read now; never log it."""
        password = self.store.password
        return self.store.url if password is None else with_password(self.store.url, password.read())

    def policy(self, name: str) -> Policy:
        """The policy with its departures laid over the default; "default" is always there."""
        if name == DEFAULT_POLICY and name not in self.tables.policies:
            return Policy()
        table = _named(self.tables.policies, name, "policy", self.path)
        base = Policy()
        return Policy(
            name=name,
            confirm=table.confirm,
            same_stack={**base.same_stack, **table.same_stack},
            new_stack={**base.new_stack, **table.new_stack},
        )

    def recipe(self, name: str) -> Recipe:
        """What is hashed about a target; a target's dtype wins over its model's."""
        target = self.target(name)
        model = self.tables.models[target.model] if target.model is not None else None
        return Recipe(
            engine=target.engine.value,
            model=target.model or target.engine.value,
            path=model.path if model else "",
            revision=model.revision if model else None,
            dtype=target.dtype or (model.dtype if model else "float32"),
            trust_remote_code=model.trust_remote_code if model else False,
            **{key: getattr(target, key) for key in _SHARED},
        )

    def operations(self, name: str) -> dict[str, Any]:
        """What is not hashed about a target, as JSON; durations in seconds, quota in bytes."""
        target = self.target(name)
        return {
            "suite": target.suite,
            "text": self.suite(target.suite).text,
            "schedule": {"every": target.every, "cron": target.cron, "grace": _grace(target)},
            "budget": {"seconds": target.budget.seconds, "when_busy": target.budget.when_busy},
            "policy": self.policy(target.policy).to_json(),
            "routes": {severity: list(names) for severity, names in self.tables.routes},
            "probes": list(target.probes),
            "shapes": list(target.shapes),
            "quorum": {"k": target.quorum.k, "n": target.quorum.n},
            **{key: getattr(target, key) for key in _AS_WRITTEN},
        }


_SHARED = (
    "device",
    "sampling",
    "generation",
    "attention",
    "sdpa",
    "cache",
    "threads",
    "nondeterministic_ops",
    "image",
    "options",
)
_AS_WRITTEN = ("place", "repeats", "owner", "quota", "baseline_of", "grade", "reference")


def with_password(url: str, password: str) -> str:
    """The address with the password behind its user, quoted."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        raise ConfigError("The store has a password but its url names no user.", remedy="Write postgresql://USER@HOST.")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:{quote(password, safe='')}@{host}"))


def _grace(target: TargetTable) -> int:
    if target.grace is not None:
        return target.grace
    return max(1, int(target.every * GRACE_SHARE)) if target.every is not None else DEFAULT_GRACE


def _named(tables: Mapping[str, _T], name: str, noun: str, path: Path) -> _T:
    if name not in tables:
        raise error_of([Problem(where=str(path), text=f'there is no {noun} "{name}"{near(name, tables)}')])
    return tables[name]
