"""What a drawing consists of, as values that a template can put down without a calculation of its own.

Across, places are percent of the width, so that a drawing fits a telephone and a screen without a script; down, they
are pixels from the top. Every figure carries the table that says the same in numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftpin.report.scale import Scale

WIDE = 1000.0  # units across the stretched box that lines are drawn in


@dataclass(frozen=True, kw_only=True)
class Place:
    """One number, drawn: where across, where down."""

    x: float
    y: float
    css: str = ""


@dataclass(frozen=True, kw_only=True)
class Label:
    """A word at an axis; `anchor` keeps it inside the drawing."""

    place: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A path in a box of `WIDE` by the panel's height; gaps where there is no number."""

    css: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A level across the panel."""

    css: str
    y: float


@dataclass(frozen=True, kw_only=True)
class Span:
    """From lowest to highest of several numbers at one place."""

    x: float
    top: float
    bottom: float


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One drawing area; panels of a figure share the axis across."""

    title: str
    height: int
    ticks: tuple[Label, ...]
    stems: tuple[Place, ...] = ()
    dots: tuple[Place, ...] = ()
    lines: tuple[Line, ...] = ()
    rules: tuple[Rule, ...] = ()
    spans: tuple[Span, ...] = ()
    lost: tuple[float, ...] = ()  # places whose number is not finite


@dataclass(frozen=True, kw_only=True)
class Table:
    """The numbers behind a figure; the first cell of a row names it. Rows stand in the order of the axis."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Panels over one axis, a legend, a table."""

    id: str
    label: str  # what a screen reader is told
    panels: tuple[Panel, ...]
    axis: tuple[Label, ...]
    axis_title: str
    table: Table
    legend: tuple[tuple[str, str], ...] = ()  # css class and words
    mark: float | None = None  # a place that matters
    mark_text: str = ""
    veil: float | None = None  # from here on the two sides saw different contexts
    notes: tuple[str, ...] = ()


def across(index: float, count: int) -> float:
    """Percent of the width of the middle of one of `count` columns."""
    return round(100.0 * (index + 0.5) / count, 3)


def down(scale: Scale, value: float | None, height: int) -> float | None:
    """Pixels from the top; None for what is not finite."""
    at = scale.at(value)
    return None if at is None else round(height * (1.0 - at), 1)


def ticks(scale: Scale, height: int) -> tuple[Label, ...]:
    """The decades of a panel's axis."""
    return tuple(Label(place=round(height * (1.0 - tick.at), 1), text=tick.label) for tick in scale.ticks)


def line(css: str, values: Sequence[float | None], scale: Scale, height: int) -> Line:
    """One value per column; a lonely one is drawn as a stroke of its own column's width."""
    parts, joined, half = [], False, WIDE * 0.3 / max(len(values), 1)
    for index, value in enumerate(values):
        y = down(scale, value, height)
        if y is None:
            joined = False
            continue
        x = WIDE * (index + 0.5) / len(values)
        parts.append(f"L{x:.1f} {y:g}" if joined else f"M{x - half:.1f} {y:g}L{x:.1f} {y:g}")
        joined = True
    return Line(css=css, path="".join(parts))


def axis(names: Sequence[str], most: int = 8) -> tuple[Label, ...]:
    """Up to `most` evenly spread labels; the first and the last are kept inside."""
    if not names:
        return ()
    step = max(1, -(-len(names) // most))
    shown = range(0, len(names), step)
    return tuple(Label(place=across(i, len(names)), text=names[i], anchor=_anchor(i, len(names))) for i in shown)


def _anchor(index: int, count: int) -> str:
    share = (index + 0.5) / count
    return "start" if share < 0.04 else "end" if share > 0.96 else "middle"
