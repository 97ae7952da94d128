"""What no single key can show to be wrong: references between tables, and keys that exclude one another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from driftpin.settings.policy import DEFAULT_POLICY
from driftpin.settings.problem import Key, near
from driftpin.settings.schema import LOG, EngineName, Tables, TargetTable

Finding = tuple[Key, str]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REPLAY = re.compile(r"r-[0-9a-f]+")


def findings(tables: Tables) -> Iterator[Finding]:
    """Every key with what is wrong about it."""
    yield from _names(tables)
    yield from _store(tables)
    yield from _suites(tables)
    yield from _channels(tables)
    yield from _routes(tables)
    for name, target in tables.targets.items():
        yield from _references(tables, name, target)
        yield from _schedule(name, target)


def _names(tables: Tables) -> Iterator[Finding]:
    for table in ("suites", "models", "targets", "policies", "channels"):
        for name in getattr(tables, table):
            if not _NAME.fullmatch(name):
                yield (table, name), "is no usable name: letters, digits, dot, dash and underscore, at most 64"
            elif table == "targets" and _REPLAY.fullmatch(name):
                yield (table, name), "reads like a replay; choose another name"


def _store(tables: Tables) -> Iterator[Finding]:
    if tables.store.password and not tables.store.url.startswith("postgresql"):
        yield ("store", "password"), "is of no use to SQLite"


def _suites(tables: Tables) -> Iterator[Finding]:
    for name, suite in tables.suites.items():
        if (suite.path is None) == (suite.builtin is None):
            yield ("suites", name), 'needs either path = "FILE" or builtin = "core", and not both'


def _channels(tables: Tables) -> Iterator[Finding]:
    for name, channel in tables.channels.items():
        if channel.kind == "webhook" and channel.url is None:
            yield ("channels", name, "url"), "is missing: a webhook needs an address"
        for key in ("url", "secret"):
            if channel.kind == "log" and getattr(channel, key) is not None:
                yield ("channels", name, key), "is of no use to a log"


def _routes(tables: Tables) -> Iterator[Finding]:
    for severity in ("page", "ticket", "info"):
        for channel in getattr(tables.routes, severity):
            yield from _exists(("routes", severity), channel, {*tables.channels, LOG}, "channel")


def _references(tables: Tables, name: str, target: TargetTable) -> Iterator[Finding]:
    place = ("targets", name)
    yield from _exists((*place, "suite"), target.suite, tables.suites, "suite")
    yield from _exists((*place, "policy"), target.policy, {*tables.policies, DEFAULT_POLICY}, "policy")
    if target.model is not None:
        yield from _exists((*place, "model"), target.model, tables.models, "model")
    elif target.engine is not EngineName.FAKE:
        yield (*place, "model"), f'is missing: the engine "{target.engine}" needs a model{near("", tables.models)}'
    if target.baseline_of == name:
        yield (*place, "baseline_of"), "names the target itself; leave it out"
    elif target.baseline_of is not None:
        yield from _exists((*place, "baseline_of"), target.baseline_of, tables.targets, "target")


def _schedule(name: str, target: TargetTable) -> Iterator[Finding]:
    if target.every is not None and target.cron is not None:
        yield ("targets", name, "cron"), "and every exclude one another"
    if target.grace is not None and target.every is None and target.cron is None:
        yield ("targets", name, "grace"), "needs a schedule: every or cron"


def _exists(key: Key, word: str, known: Iterable[str], noun: str) -> Iterator[Finding]:
    names = set(known)
    if word not in names:
        yield key, f'there is no {noun} "{word}"{near(word, names)}'
