"""What every benchmark shares: a line against its budget, the report, and a store with big replays in it.

A budget that is missed is said and does not fail the run: a loaded machine must not look like a broken product.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftpin.store import Store


@dataclass(frozen=True, kw_only=True)
class Line:
    """One measured figure; `at_least` turns the budget around, and no budget means that none was set."""

    what: str
    measured: float
    unit: str
    budget: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether the budget is kept; None without one."""
        if self.budget is None:
            return None
        return self.measured >= self.budget if self.at_least else self.measured <= self.budget

    def to_json(self) -> dict[str, Any]:
        """As printed with `--format json`."""
        return {
            "what": self.what,
            "measured": self.measured,
            "unit": self.unit,
            "budget": self.budget,
            "at_least": self.at_least,
            "holds": self.holds,
        }

    def __str__(self) -> str:
        words = {None: "", True: "ok", False: "MISSED"}[self.holds]
        sign = ">=" if self.at_least else "<="
        budget = "" if self.budget is None else f"{sign} {self.budget:g}"
        return f"{self.what:58} {self.measured:10.4g} {self.unit:5} {budget:>10}  {words}".rstrip()


def parser(text: str | None) -> argparse.ArgumentParser:
    """A parser with the options every benchmark has."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--format", choices=["text", "json"], default="text")
    return made


def report(lines: Sequence[Line], how: str, **facts: Any) -> None:
    """Print the table, or with `how` "json" one object."""
    if how == "json":
        print(json.dumps({"lines": [line.to_json() for line in lines], "machine": machine(), **facts}))
        return
    for line in lines:
        print(line)
    print(f"machine: {machine()}")


def machine() -> str:
    """The machine in words, with how busy it was."""
    busy = os.getloadavg()[0]
    return f"{os.cpu_count()}-core {platform.machine()}, Python {platform.python_version()}, load {busy:.1f}"


def seconds(action: Callable[[], Any]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def processor(action: Callable[[], Any], rounds: int) -> float:
    """The least processor time of several calls: on a busy machine it says more than wall time."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def best(action: Callable[[], Any], rounds: int) -> float:
    """The least wall time of several calls: what disturbs a run only ever slows it."""
    return min(seconds(action) for _ in range(rounds))


@contextmanager
def sqlite() -> Iterator[Store]:
    """A new store that is gone afterwards."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(f"sqlite:///{Path(folder) / 'bench.db'}", migrate=True) as store,
    ):
        yield store
