"""What is wrong in a configuration, and where. Collects; the caller decides when to raise."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driftpin.errors import ConfigError

Key = tuple[str, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True, order=True)
class Problem:
    """One thing that is wrong: in which file or variable, under which key, in words."""

    where: str
    key: Key = ()
    text: str

    def __str__(self) -> str:
        place = f"{self.where}: {dotted(self.key)}" if self.key else self.where
        return f"{place}: {self.text}" + ("" if self.text.endswith("?") else ".")


def dotted(key: Sequence[str]) -> str:
    """A key as TOML writes it, names that are not bare in quotes."""
    return ".".join(part if _BARE.fullmatch(part) else '"' + part.replace('"', '\\"') + '"' for part in key)


def near(word: str, known: Iterable[str]) -> str:
    """A clause that offers the most similar known words, or lists them all, or nothing when there are none."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=2, cutoff=0.6)
    if close:
        return "; did you mean " + " or ".join(f'"{name}"' for name in close) + "?"
    return "; known: " + ", ".join(names[:30]) if names else ""


def refuse(problems: Iterable[Problem]) -> None:
    """Raise one `ConfigError` that lists every problem; do nothing when there is none."""
    found = list(problems)
    if found:
        raise error_of(found)


def error_of(problems: Iterable[Problem]) -> ConfigError:
    """One error that lists every problem, sorted, each once."""
    lines = [str(problem) for problem in sorted(set(problems))]
    return ConfigError(lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} errors:", *lines]))
