"""Measuring one row: plant, replay, refer, and write down what the product said. Has no opinion of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.planted.change import Change
from benchmarks.planted.prompts import Part
from benchmarks.planted.row import Row
from benchmarks.planted.station import Station
from driftpin.environment.environment import Section
from driftpin.errors import DriftpinError
from driftpin.workflow.assess import Assessment
from runner.planting import Options, plant


@dataclass
class Garden:
    """Planted folders: the newest is kept, because the next row often plants the same."""

    work: Path
    newest: tuple[str, Path, int] | None = field(default=None)

    @contextmanager
    def planted(self, source: Path, change: Change) -> Iterator[tuple[Path, int | None]]:
        """The folder with the change and how much differs; the source itself where nothing is planted in files."""
        if change.plant is None:
            yield source, None
            return
        name = f"{source.name}-{change.id}"
        if self.newest is None or self.newest[0] != name:
            self.clear()
            folder = self.work / "planted" / name
            count = plant(source, folder, change.plant, Options(**change.options))
            self.newest = (name, folder, count)
        yield self.newest[1], self.newest[2]

    def clear(self) -> None:
        """Give the disk back."""
        if self.newest is not None:
            shutil.rmtree(self.newest[1], ignore_errors=True)
        self.newest = None


def measure(station: Station, part: Part, change: Change, garden: Garden, *, reference: bool = True) -> Row:
    """The row of one change; a replay that fails is a row with its reason."""
    start = time.monotonic()
    row = _blank(station, part, change)
    try:
        with garden.planted(Path(station.recipe.path), change) as (folder, count):
            row = replace(row, planted=count)
            replay = station.replay(change, folder)
            row = replace(row, replay=replay.id)
            found = station.judge(replay)
            if reference:
                found = station.refer(replay, found, change)
            row = observed(row, found)
    except DriftpinError as error:
        row = replace(row, failed=str(error))
    return replace(row, seconds=round(time.monotonic() - start, 1))


def judged_again(station: Station, row: Row, change: Change | None) -> Row:
    """The same row, its stored replays judged by the code and the expectations of today, without a new replay."""
    if change is not None:
        row = replace(row, what=change.what, kind=change.kind.value, expected=_expected(change))
    if row.replay is None:
        return row
    try:
        return observed(row, station.judge(station.store.replays.get(row.replay)))
    except DriftpinError as error:
        return replace(row, failed=str(error))


def _blank(station: Station, part: Part, change: Change) -> Row:
    return Row(
        model=station.model.id,
        part=part.value,
        change=change.id,
        beside=change.beside,
        what=change.what,
        kind=change.kind.value,
        expected=_expected(change),
    )


def _expected(change: Change) -> dict[str, Any]:
    return {
        "verdicts": sorted(verdict.value for verdict in change.expected.verdicts),
        "classes": sorted(change.expected.classes),
        "block": change.expected.block,
        "always": change.expected.always,
    }


def observed(row: Row, found: Assessment) -> Row:
    """The row with everything that the assessment says."""
    verdict = found.verdict
    return replace(
        row,
        failed=None,
        verdict=verdict.kind.value,
        severity=verdict.severity.value,
        counts={outcome.value: count for outcome, count in verdict.counts.items()},
        stack=found.equalities[Section.STACK].value if found.equalities else None,
        **_place(found),
        **_sizes(found),
        **_diagnosis(found),
    )


def _place(found: Assessment) -> dict[str, Any]:
    place = found.verdict.place
    if place is None:
        return dict.fromkeys(("found", "block", "arm", "place"))
    return {"found": place.found, "block": place.block, "arm": place.arm, "place": place.sentence}


def _sizes(found: Assessment) -> dict[str, Any]:
    first, shift = found.verdict.first, found.verdict.shift
    return {
        "divergence": first.divergence.movement if first else None,
        "limit": first.limit if first else None,
        "shift": shift.mean if shift else None,
        "yardstick": shift.yardstick if shift else None,
    }


def _diagnosis(found: Assessment) -> dict[str, Any]:
    told = found.verdict.diagnosis
    numbers = ("ratio", "farther", "asked", "reference_shift", "reference_limit")
    if told is None:
        return dict.fromkeys(("word", "unsaid", *numbers))
    word = {"word": told.word.value if told.word else None, "unsaid": told.absent}
    return word | {name: getattr(told, name) for name in numbers}
