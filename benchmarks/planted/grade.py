"""Hit or miss: one row's observation held against its expectation. Pure, and written before any row was measured.

A fault counts as found when the verdict, the class and the place are right. What moved less than rounding moves the
model is asked for nothing but the changed fact, and is marked as below the yardstick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.planted.change import HEAD, MODEL, NATIVE_PATH, UNSAID, Kind
from benchmarks.planted.row import Row
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.outcome import Outcome

HONEST = frozenset({Outcome.FLIP, Outcome.TIE_FLIP, Outcome.NUMERIC, Outcome.IDENTICAL})
DEFECT = 1.43  # the smallest ratio that a defect of the native path was measured at before there was a matrix
QUIET = frozenset({VerdictKind.MATCH, VerdictKind.NUMERIC})


class Mark(StrEnum):
    """How a row ended."""

    HIT = "hit"  # verdict, class and place as expected
    FLIP = "honest flip"  # benign, and called drift because a token really changed beyond F
    BELOW = "below"  # a fault that moved less than rounding does, and was not called by its name
    VOID = "void"  # the number format cannot hold the fault: no bit changed
    MISS = "miss"  # anything else


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The mark with what speaks against a hit."""

    mark: Mark
    against: tuple[str, ...] = ()


def grade(row: Row) -> Grade:
    """The grade of a measured row."""
    if row.failed is not None:
        refused = row.kind == Kind.REFUSED
        return Grade(mark=Mark.HIT) if refused else Grade(mark=Mark.MISS, against=(f"did not run: {row.failed}",))
    if row.kind == Kind.FAULT and row.planted == 0:
        return _graded(row, tuple(_against_benign(row)), Mark.VOID)
    if row.kind != Kind.FAULT:
        return _benign(row)
    against = tuple(_against_fault(row))
    return Grade(mark=Mark.BELOW, against=against) if against and _small(row) else _graded(row, against, Mark.HIT)


def _graded(row: Row, against: tuple[str, ...], otherwise: Mark) -> Grade:
    return Grade(mark=Mark.MISS if against else otherwise, against=against)


def _benign(row: Row) -> Grade:
    against = tuple(_against_benign(row))
    if not against and row.verdict == VerdictKind.DRIFT:
        return Grade(mark=Mark.FLIP)
    return _graded(row, against, Mark.HIT)


def _against_benign(row: Row) -> Iterator[str]:
    """A drift is forgiven where every drifting canary is a flip; nothing may be accused on a changed stack."""
    quiet = row.expected["verdicts"] if row.kind != Kind.FAULT else QUIET
    if row.verdict not in quiet and not _only_flipped(row):
        yield f"verdict {row.verdict}"
    if row.word in (MODEL, NATIVE_PATH):
        yield f"called {row.word}"
    if row.stack == "different" and row.found:
        yield f"accuses {row.block or 'a place'}"


def _only_flipped(row: Row) -> bool:
    honest = {Outcome.FLIP} <= set(row.counts) <= HONEST
    return row.verdict == VerdictKind.DRIFT and honest and not row.expected.get("always")


def _against_fault(row: Row) -> Iterator[str]:
    if not _as_loud(row):
        yield f"verdict {row.verdict}"
    if (row.word or UNSAID) not in row.expected["classes"]:
        yield f"called {row.word or UNSAID}"
    yield from _against_place(row)


def _as_loud(row: Row) -> bool:
    """The verdict is expected, or outranks the drift that was: a strong fault may leave one token for ever."""
    expected = row.expected["verdicts"]
    return row.verdict in expected or (row.verdict == VerdictKind.BROKEN and VerdictKind.DRIFT in expected)


def _against_place(row: Row) -> Iterator[str]:
    """The right block where bits allow it; on a changed stack silence is allowed, a wrong block is not."""
    wanted = row.expected["block"]
    if wanted is None or row.found is None:
        return
    right = row.found and row.block == (None if wanted == HEAD else wanted)
    if not right and (row.found or row.stack != "different"):
        yield f"place {row.block or ('behind the blocks' if row.found else 'not found')}"


def _small(row: Row) -> bool:
    """Moved no more than rounding moves the model; a benign change beside it is allowed its own yardstick.

    Where the reference ran, a fault of the weights is measured by how far it moved the reference, and a defect of the
    native path also by its distance to it: a cache does not act in the scores that are held against the yardstick.
    """
    quiet = HONEST if row.stack == "different" else HONEST - {Outcome.FLIP}
    if row.expected.get("always") or not set(row.counts) <= quiet:
        return False
    if MODEL in row.expected["classes"] and row.reference_shift is not None and row.reference_limit is not None:
        return row.reference_shift <= row.reference_limit
    if NATIVE_PATH in row.expected["classes"] and row.ratio is not None and row.ratio >= DEFECT:
        return False
    allowed = 1.0 if row.stack != "different" else 2.0
    return row.times is not None and row.times <= allowed
