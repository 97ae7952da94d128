"""One row of the matrix: what was planted, what was expected, and what the product said. A value, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class Row:
    """Observed facts are None where the product said nothing; numbers are in nats or logits."""

    model: str
    part: str
    change: str
    beside: str
    what: str
    kind: str
    expected: Mapping[str, Any]  # verdicts, classes, block, always
    planted: int | None = None  # numbers or entries that differ in the folder; None: nothing was planted there
    replay: str | None = None  # id in the station's store, where everything recorded stays
    failed: str | None = None  # why the replay did not run to its end
    verdict: str | None = None
    severity: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)  # canaries by outcome
    stack: str | None = None  # equality with the baseline's
    word: str | None = None  # of the diagnosis
    unsaid: str | None = None  # why there is no word
    found: bool | None = None  # a place is named; None: nothing parted, nobody asked
    block: str | None = None
    arm: str | None = None  # whose scores told the place
    place: str | None = None  # the place in the product's words
    divergence: float | None = None  # D of the first divergence
    limit: float | None = None  # F there
    shift: float | None = None  # mean |Δ log-prob| of the scores
    yardstick: float | None = None
    ratio: float | None = None  # distance to the reference over the baseline's own
    farther: int | None = None
    asked: int | None = None
    reference_shift: float | None = None
    reference_limit: float | None = None
    seconds: float = 0.0

    @property
    def key(self) -> Key:
        """What may be measured once."""
        return self.model, self.part, self.change, self.beside

    @property
    def times(self) -> float | None:
        """The shift in yardsticks; None where either is not known."""
        if self.shift is None or not self.yardstick:
            return None
        return self.shift / self.yardstick


def kept(path: Path) -> dict[Key, Row]:
    """Rows of a results file; the last one of a key counts, a line cut short by an interruption does not."""
    rows: dict[Key, Row] = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            row = Row(**json.loads(line))
        except ValueError:
            continue
        rows[row.key] = row
    return rows


def keep(path: Path, row: Row) -> None:
    """Append one row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
