"""The check of a suite in a terminal. Draws the documented JSON body; decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from driftpin.cli.out import plain
from driftpin.cli.screens import new_table
from driftpin.counting import canaries_counted, counted

if TYPE_CHECKING:
    from rich.console import Console

WIDEST_BAR = 40  # characters


def check(c: Console, body: Mapping[str, Any]) -> None:
    """What was measured, then what to do."""
    c.print(f"{plain(body['suite'])}: {canaries_counted(len(body['canaries']))}, digest {body['digest'][:12]}")
    if body["model"] is not None:
        _model(c, body["model"])
    levels = {"warning": "yellow", "note": "dim"}
    for level, colour in levels.items():
        found = [one for one in body["findings"] if one["level"] == level]
        for one in found:
            c.print(f"[{colour}]{level:8}[/]{plain(one['sentence'])}", soft_wrap=True)
            c.print(f"        [dim]{plain(one['remedy'])}[/]", soft_wrap=True)
    counts = {level: sum(one["level"] == level for one in body["findings"]) for level in levels}
    c.print(", ".join(f"{count} {level}{'s' * (count != 1)}" for level, count in counts.items()))


def _model(c: Console, model: Mapping[str, Any]) -> None:
    c.print(f"[bold]model[/]   {plain(model['model'])}, {plain(model['dtype'])} on {plain(model['device'])}")
    _lengths(c, model)
    _order(c, model["order"])
    _margins(c, model)


def _lengths(c: Console, model: Mapping[str, Any]) -> None:
    if _absent(c, "lengths", model["lengths"]):
        return
    found = model["lengths"]["value"]
    table = new_table("lengths", "tokens", "below", "across", "beyond")
    for one in found:
        table.add_row(
            plain(one["name"]), str(one["at"]), *(str(len(one[side])) for side in ("below", "across", "beyond"))
        )
    c.print(table)


def _order(c: Console, order: Mapping[str, Any]) -> None:
    if _absent(c, "order", order):
        return
    found = order["value"]
    count = len(found["dependent"])
    same = (
        f"the {counted(found['executions'], 'execution')} left the same bits"
        if not count
        else counted(count, "canary differs", "canaries differ")
    )
    c.print(f"[bold]order[/]   in {found['order']} order {same}")


def _margins(c: Console, model: Mapping[str, Any]) -> None:
    if _absent(c, "margins", model["margins"]):
        return
    found = model["margins"]["value"]
    limit, samples = f"{found['limit']:.3g}", found["samples"]
    c.print(
        f"[bold]margins[/] against F = {limit} logits: rounding alone moved the top two by no more at 99.9 % of "
        f"{samples} disturbed positions; a flip within F is judged tie_flip, not drift",
        soft_wrap=True,
    )
    _canaries(c, model["tokens"], found["canaries"])
    _histogram(c, found["histogram"])
    c.print("        " + ", ".join(f"{count} {band}" for band, count in found["bands"].items()))


def _canaries(c: Console, tokens: Mapping[str, Any], canaries: Mapping[str, Any]) -> None:
    table = new_table("canary", "prompt", "output", "smallest", "at", "in F", "below F", "flipped", "")
    for name, one in sorted(canaries.items(), key=lambda pair: pair[1]["ratio"]):
        flipped = [str(close["position"]) for close in one["close"] if close["flipped"] or not close["scored"]]
        numbers = (f"{one['smallest_margin']:.3g}", str(one["position"]), f"{one['ratio']:.3g}")
        sizes = (str(tokens[name]["prompt"]), str(one["positions"]))
        table.add_row(plain(name), *sizes, *numbers, str(len(one["close"])), ", ".join(flipped) or "-", one["band"])
    c.print(table)


def _histogram(c: Console, rows: list[Mapping[str, Any]]) -> None:
    """One bar per range of smallest margins; a mark is a canary while they fit."""
    filled = [index for index, row in enumerate(rows) if row["count"]]
    scale = max(1.0, max((row["count"] for row in rows), default=0) / WIDEST_BAR)
    for row in rows[filled[0] : filled[-1] + 1] if filled else ():
        end = "" if row["to"] is None else f"{row['to']:g}"
        span = f"{row['from']:g} to {end}" if end else f"{row['from']:g} and more"
        c.print(f"        {span:>13} F  {'#' * round(row['count'] / scale)} {row['count'] or ''}".rstrip())


def _absent(c: Console, name: str, part: Mapping[str, Any]) -> bool:
    if "unknown" not in part:
        return False
    c.print(f"[bold]{name:8}[/]not known: {plain(part['unknown'])}", soft_wrap=True)
    return True
