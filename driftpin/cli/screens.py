"""What people read in a terminal. Draws documented JSON bodies; decides nothing. Everything from outside is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from driftpin.cli.out import plain
from driftpin.counting import canaries_counted, counted

if TYPE_CHECKING:
    from rich.console import Console

    from driftpin.store.replay import Replay
    from driftpin.workflow.assess import Assessment

COLOURS = {"page": "bold red", "ticket": "yellow", "info": "cyan", "none": "green"}
DIGEST = re.compile("[0-9a-f]{40,64}")  # a sha256 or a commit: its first digits tell two apart
SHOWN_FACTS = 8
SHOWN_CANARIES = 12


def assessment(c: Console, found: Assessment, body: Mapping[str, Any], replay: Replay) -> None:
    """The whole verdict on one screen, in the order in which one asks: what, how much, which kind, where, why."""
    colour = COLOURS[body["severity"]]
    c.print(f"[{colour}]{plain(body['headline'])}[/]", soft_wrap=True)
    against = body["baseline"]
    held = f" against {plain(against['label'])}" if against else ""
    c.print(f"[dim]{plain(replay.id)} of {plain(replay.target)}{held}, severity {body['severity']}[/]")
    _shift(c, body["shift"])
    _texts(c, body["texts"])
    if body["diagnosis"]:
        _line(c, "class", body["diagnosis"]["sentence"])
    _divergence(c, body["first_divergence"])
    if body["localisation"]:
        _line(c, "where", body["localisation"]["sentence"])
    _environment(c, body)
    if body["first_bad"]:
        _line(c, "since", f"{body['first_bad']}; last good {body['last_good'] or 'unknown'}")
    _outcomes(c, body["outcomes"])
    for sentence in body["remarks"]:
        _line(c, "note", sentence)
    for sentence in body["unseen"]:
        c.print(f"[dim]unseen  {plain(sentence)}[/]", soft_wrap=True)
    for number, command in enumerate(body["next"]):
        _line(c, "" if number else "next", command)


def _line(c: Console, label: str, text: str) -> None:
    c.print(f"[bold]{label:8}[/]{plain(text)}", soft_wrap=True)


def _shift(c: Console, shift: Mapping[str, Any] | None) -> None:
    """Nothing for numbers that did not move."""
    if shift is None or not (shift["mean"] or shift["largest_movement"]):
        return
    if isinstance(shift["mean"], str):
        _line(c, "shift", "log-probabilities are no longer finite numbers")
        return
    size = (
        f"mean |Δ log-prob| {_short(shift['mean'])} nats over {canaries_counted(shift['canaries'])} ({shift['probe']})"
    )
    _line(c, "shift", f"{size}, {_against(shift)}")


def _against(shift: Mapping[str, Any]) -> str:
    if shift["yardstick"] is None:
        return "and the baseline holds no rounding yardstick to measure it by"
    times = "" if shift["times"] is None else f"{_short(shift['times'])} times "
    floor = "" if shift["repeat_floor"] is None else f"; repeat floor {_short(shift['repeat_floor'])}"
    return f"{times}the rounding yardstick of {_short(shift['yardstick'])}; above {shift['limit']:g} is a shift{floor}"


def _texts(c: Console, texts: Mapping[str, Any] | None) -> None:
    """Nothing where every text is the baseline's."""
    if texts is None or not texts["changed"]:
        return
    alone = texts["by_rounding"]
    measured = "" if alone is None else f"; rounding alone changes {_short(alone)} of them on average"
    unknown = "; the baseline did not measure how many rounding alone changes" if alone is None else ""
    _line(c, "texts", f"{texts['changed']} of {texts['decoded']} changed{measured}{unknown}")


def _divergence(c: Console, first: Mapping[str, Any] | None) -> None:
    if first is None:
        return
    _line(c, "first", f"{first['canary']} ({first['probe']}), output token {first['position']}: {_margin(first)}")
    if "before" in first:
        c.print(f"        …{plain(first['before'])}", style="dim", soft_wrap=True)
        c.print(f"      [red]-[/] {plain(first['baseline_text'])}", soft_wrap=True)
        c.print(f"      [green]+[/] {plain(first['candidate_text'])}", soft_wrap=True)
    else:
        c.print("        text is hidden for this suite", style="dim")


def _margin(first: Mapping[str, Any]) -> str:
    margin = f"the baseline's margin was {_short(first['baseline_margin'])}"
    if first["movement"] is None:
        return f"D unknown, {first['movement_missing']}; {margin}"
    limit = "no F to hold it against" if first["limit"] is None else f"F = {_short(first['limit'])}"
    return f"D = {_short(first['movement'])} logits against {limit}; {margin}"


def _environment(c: Console, body: Mapping[str, Any]) -> None:
    """What may have done it, likeliest first, behind what is ruled out."""
    attribution, difference = body["attribution"], body["environment_difference"]
    if attribution is None or difference is None:
        return
    if body["verdict"] == "match":  # a difference that changed nothing is the cause of nothing
        _line(
            c, "differs", "; ".join(one["sentence"] for one in attribution["suspects"][:SHOWN_FACTS]) or "nothing known"
        )
        return
    _line(c, "because", attribution["likeliest"])
    for suspect in attribution["suspects"][1:SHOWN_FACTS]:
        c.print(f"        {plain(suspect['sentence'])}", soft_wrap=True)
    if len(attribution["suspects"]) > SHOWN_FACTS:
        c.print(f"        … and {len(attribution['suspects']) - SHOWN_FACTS} more")
    same = [one["matter"] for one in attribution["ruled"] if one["word"] == "same"]
    if same:
        c.print(f"        ruled out: {plain(', '.join(same))}", soft_wrap=True)
    for reason, titles in _undetermined(attribution["ruled"]).items():
        c.print(f"        {plain(', '.join(titles))}: {plain(reason)}", soft_wrap=True)
    c.print(f"        {plain(attribution['microprobes']['sentence'])}", soft_wrap=True)


def _undetermined(ruled: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Titles of what could not be compared by the reason: one line for several that share it."""
    found: dict[str, list[str]] = {}
    for one in ruled:
        if one["word"] == "undetermined":
            title, _, reason = one["sentence"].partition(": ")
            found.setdefault(reason, []).append(title)
    return found


def _fact(fact: Mapping[str, Any]) -> str:
    before, after = (_value(fact[side]) for side in ("before", "after"))
    return f"{fact['section']}: {fact['name']} {fact['kind']}: {before} -> {after}"


def _value(wrapped: Mapping[str, Any] | None) -> str:
    if wrapped is None:
        return "absent"
    text = f"unknown ({wrapped['unknown']})" if "unknown" in wrapped else str(wrapped["value"])
    if DIGEST.fullmatch(text):
        return text[:12]
    return text if len(text) <= 48 else text[:45] + "…"


def _outcomes(c: Console, outcomes: Mapping[str, Mapping[str, Any]]) -> None:
    notable = [(name, one) for name, one in outcomes.items() if one["outcome"] != "identical"]
    for name, one in notable[:SHOWN_CANARIES]:
        why = one["findings"][0]["why"]
        c.print(f"        [bold]{plain(name)}[/] {one['outcome']}: {plain(why)}", soft_wrap=True)
    if len(notable) > SHOWN_CANARIES:
        c.print(f"        … and {len(notable) - SHOWN_CANARIES} more canaries")


def dry_run(c: Console, body: Mapping[str, Any]) -> None:
    """What `replay --dry-run` would do."""
    seconds = body["estimated_seconds"]
    cost = "unknown seconds: this target has no finished replay" if seconds is None else f"about {seconds:g} s"
    size = f"{canaries_counted(body['canaries'])}, {counted(body['executions'], 'execution')}"
    c.print(f"{plain(body['target'])}: {size}, {cost}")
    if body["reference_executions"]:
        c.print(f"and, only where something moved, {body['reference_executions']} scores of the float32 reference arm")


def replays(c: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """The table of replays."""
    names = ("replay", "target", "status", "verdict", "created", "purpose", "traces")
    table = new_table(*names, whole=("replay", "status", "verdict", "created", "traces"))
    for row in rows:
        marks = (row["replay"], row["target"], row["status"], row["verdict"] or "", _minute(row["created_at"]))
        table.add_row(*(plain(m) for m in (*marks, row["purpose"], (row["trace_set"] or "")[:12])))
    c.print(table)
    for row in rows:
        if row["reason"]:
            c.print(f"[dim]{plain(row['replay'])}: {plain(row['reason'])}[/]", soft_wrap=True)


def baselines(c: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """The table of baselines."""
    names = ("baseline", "current", "device class", "replay", "blessed by", "why", "when")
    table = new_table(*names, whole=("baseline", "replay", "when"))
    for row in rows:
        label = f"{row['target']}@{row['number']}"
        marks = (label, "yes" if row["current"] else "", row["device_class"][:40], row["replay"], row["blessed_by"])
        table.add_row(*(plain(m) for m in (*marks, row["reason"], _minute(row["created_at"]))))
    c.print(table)


def contents(c: Console, body: Mapping[str, Any]) -> None:
    """What a replay recorded."""
    c.print(
        f"{plain(body['label'])}: replay {plain(body['replay'])}, {body['status']}, {body['verdict'] or 'not judged'}"
    )
    if not body["detail"]:
        table = new_table("execution", "head", "layers", "remarks")
        for one in body["executions"]:
            remarks = one.get("unmeasured") or one.get("layers_absent") or ", ".join(one.get("ills", ()))
            parts = (one["execution"], one.get("head", "")[:12], one.get("layers", "")[:12], remarks)
            table.add_row(*(plain(p) for p in parts))
        c.print(table)
    for one in body["detail"]:
        _execution(c, one)


def _execution(c: Console, one: Mapping[str, Any]) -> None:
    c.print(f"[bold]{plain(one['execution'])}[/] {one['prompt_tokens']} prompt tokens, stopped by {one['stop']}")
    if "output" in one:
        c.print(f"  {plain(one['output'])}", soft_wrap=True)
    table = new_table("n", "id", "text", "log-prob", "margin", "entropy", "digest")
    for number, token in enumerate(one["tokens"]):
        numbers = (_short(token[name]) for name in ("logprob", "margin", "entropy"))
        table.add_row(str(number), str(token.get("id", "")), plain(token.get("text", "")), *numbers, token["digest"])
    c.print(table)


def environment(c: Console, body: Mapping[str, Any]) -> None:
    """Facts by section."""
    for section in ("model", "stack", "behaviour", "context"):
        digest = body["digests"].get(section, "")[:12]
        c.print(f"[bold]{section}[/] {digest}")
        for name in sorted(body[section]):
            c.print(f"  {plain(name)} = {plain(_value(body[section][name]))}", soft_wrap=True)


def environment_difference(c: Console, body: Mapping[str, Any]) -> None:
    """Facts that differ, likeliest first."""
    said = ", ".join(f"{section} {word}" for section, word in body["equality"].items())
    c.print(f"[bold]{plain(said)}[/]")
    for fact in body["facts"]:
        c.print(f"  {plain(_fact(fact))}", soft_wrap=True)


def _short(number: object) -> str:
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def _minute(moment: str) -> str:
    """An ISO time up to its minute, as people write it; rows stand in their order anyway."""
    return moment[:16].replace("T", " ")


def new_table(*names: str, whole: Sequence[str] = ()) -> Any:
    """An empty table without lines; long cells fold, but for those of the columns in `whole`."""
    from rich.table import Table  # noqa: PLC0415 - start-up time

    made = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    for name in names:
        made.add_column(name, overflow="fold", no_wrap=name in whole)
    return made
