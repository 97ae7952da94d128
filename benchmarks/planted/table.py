"""The matrix as Markdown. Pure: rows in, text out; every number is the product's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.planted.change import ALONE, EAGER, Kind
from benchmarks.planted.grade import Mark, grade
from benchmarks.planted.prompts import Part
from benchmarks.planted.row import Row

HEADER = (
    "| change | expected | verdict | class | first place | D / F | shift ÷ yardstick | ratio | s | fresh | held | fit |"
)
TITLES = {Part.FRESH: "Fresh part", Part.HELD: "Held part", Part.FIT: "Fit part"}
Asked = tuple[str, str, str]  # model, change, beside
SHORT = {"rounding": "rounding", "native_path_defect": "native path", "model_or_input_change": "model or input"}
PARTS = (
    ("Benign changes", (Kind.BENIGN, Kind.REFUSED), ALONE),
    ("Benign changes on top of eager attention", (Kind.BENIGN, Kind.REFUSED), EAGER),
    ("Faults alone", (Kind.FAULT,), ALONE),
    ("Faults on top of eager attention", (Kind.FAULT,), EAGER),
)


def table(rows: Sequence[Row]) -> str:
    """Every model's rows of the fresh part with the marks of the others, a summary before them, the misses behind."""
    by_part = {part: [row for row in rows if row.part == part.value] for part in Part}
    fresh = by_part[Part.FRESH]
    others = [{_asked(row): row for row in by_part[part]} for part in (Part.HELD, Part.FIT)]
    models = list(dict.fromkeys(row.model for row in fresh))
    parts = [_summary(by_part[part], TITLES[part]) for part in Part]
    parts += [_model(model, [row for row in fresh if row.model == model], others) for model in models]
    parts += [_misses([row for part in Part for row in by_part[part]])]
    return "\n\n".join(part for part in parts if part)


def _asked(row: Row) -> Asked:
    """What rows of different parts have in common."""
    return row.model, row.change, row.beside


def _summary(rows: Sequence[Row], title: str) -> str:
    if not rows:
        return ""
    rule = "|---|---|---|" + "---|" * len(Mark)
    lines = [f"**{title}**, rows by mark:", "", f"| model | | rows | {' | '.join(Mark)} |", rule]
    for model in dict.fromkeys(row.model for row in rows):
        for what, kinds, beside in PARTS:
            chosen = [r for r in rows if r.model == model and r.kind in kinds and r.beside == beside]
            if chosen:
                lines.append(f"| {model} | {what.lower()} | {len(chosen)} | {_marks(chosen)} |")
    return "\n".join([*lines, f"| all | | {len(rows)} | {_marks(rows)} |"])


def _marks(rows: Sequence[Row]) -> str:
    counts = Counter(grade(row).mark for row in rows)
    return " | ".join(str(counts[mark]) for mark in Mark)


def _model(model: str, rows: Sequence[Row], others: Sequence[Mapping[Asked, Row]]) -> str:
    parts = [f"### {model}"]
    for title, kinds, beside in PARTS:
        chosen = [row for row in rows if row.kind in kinds and row.beside == beside]
        if chosen:
            lines = [_line(row, [other.get(_asked(row)) for other in others]) for row in chosen]
            rule = "|" + "---|" * (HEADER.count("|") - 1)
            parts.append("\n".join([f"{title}:", "", HEADER, rule, *lines]))
    return "\n\n".join(parts)


def _line(row: Row, others: Sequence[Row | None]) -> str:
    cells = (
        row.what,
        _expected(row),
        _verdict(row),
        SHORT.get(row.word or "", "–"),
        _place(row),
        f"{_number(row.divergence)} / {_number(row.limit)}" if row.divergence is not None else "–",
        _number(row.times),
        _ratio(row),
        f"{row.seconds:.0f}",
        grade(row).mark.value,
        *("" if other is None else grade(other).mark.value for other in others),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _expected(row: Row) -> str:
    if row.kind == Kind.REFUSED:
        return "cannot run"
    words = "/".join(SHORT[word] for word in row.expected["classes"] if word in SHORT)
    verdicts = "/".join(row.expected["verdicts"])
    block = row.expected["block"]
    return f"{verdicts}; {words}" + (f"; {_short(block)}" if block else "")


def _verdict(row: Row) -> str:
    if row.failed is not None:
        return "did not run"
    counted = ", ".join(f"{count} {outcome}" for outcome, count in row.counts.items())
    return f"{row.verdict} ({row.severity}): {counted}"


def _place(row: Row) -> str:
    if row.found is None:
        return "–"
    if not row.found:
        return "none"
    told = _short(row.block) if row.block else "behind the blocks"
    return f"{told} ({row.arm})" if row.arm else told


def _short(block: str) -> str:
    return block.removeprefix("model.")


def _ratio(row: Row) -> str:
    return "–" if row.ratio is None else f"{_number(row.ratio)} ({row.farther}/{row.asked})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _misses(rows: Sequence[Row]) -> str:
    lines = [_miss(row) for row in rows if grade(row).mark is Mark.MISS]
    return "### Misses\n\n" + ("\n".join(lines) if lines else "None.")


def _miss(row: Row) -> str:
    beside = "" if row.beside == ALONE else f" on {row.beside}"
    sizes = {
        "shift ÷ yardstick": row.times,
        "D": row.divergence,
        "F": row.limit,
        "ratio": row.ratio,
        "reference shift": row.reference_shift,
        "its limit": row.reference_limit,
    }
    told = ", ".join(f"{name} {_number(size)}" for name, size in sizes.items() if size is not None)
    against = "; ".join(grade(row).against)
    return f"- {row.model}, {row.part}: **{row.change}**{beside}: {against}" + (f" ({told})" if told else "")
