"""What margins mean for the author of a suite: too close to a tie to be quiet, too far to be sensitive. Words only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.workflow.suite_check_margins import FAR, Band, Close, Margins, Parting

FEWEST = 8  # tokens: cutting a canary shorter than this leaves little to see
SHOWN = 4  # positions named in one sentence

Names = Mapping[int, str]  # what a token id is written as; ids that are not in it are shown as numbers


def margin_findings(found: Sequence[Margins], floor: float, names: Names, *, text: bool = True) -> Iterator[Finding]:
    """Which canaries to change, one by one, then those that are near or far, together; `text` False names no token."""
    for one in found:
        if one.parting is not None and one.parting.beyond_rounding:
            yield _two_paths(one.canary, one.parting, floor)
        if one.loud:
            yield _loud(one, floor, names, text)
    yield from _near([one for one in found if one.band is Band.NEAR], floor)
    yield from _far([one for one in found if one.band is Band.FAR], found)


def close_to_json(close: Close, names: Names, *, text: bool) -> dict[str, Any]:
    """One close position; the tokens are left out where the suite hides its text."""
    seen = {
        "position": close.position,
        "margin": close.margin,
        "scored": close.scored,
        "flipped": close.flipped,
        "runs": close.runs,
    }
    if not text:
        return seen
    written = {"top_text": names.get(close.top), "second_text": names.get(close.second)}
    return {**seen, "top": close.top, "second": close.second, **written}


def _two_paths(canary: str, parting: Parting, floor: float) -> Finding:
    return Finding(
        kind=FindingKind.TWO_PATHS,
        level=Level.WARNING,
        sentence=f"Decode and score of {canary!r} do not compute the same: at output token {parting.position} their "
        f"top two logits lie {parting.ratio * floor:.3g} apart, {parting.ratio:.3g} F.",
        remedy="Look for what differs between generating and one prefill: cache, positions, mask. Until then the "
        "scores of this canary, and where a change enters, say little about what users get.",
        canaries=(canary,),
    )


def _loud(one: Margins, floor: float, names: Names, text: bool) -> Finding:
    said = "; ".join(_said(close, names, text) for close in one.loud[:SHOWN])
    more = f"; and {len(one.loud) - SHOWN} more" if len(one.loud) > SHOWN else ""
    first = one.loud[0].position
    if first >= FEWEST:
        remedy = f"Set max_new_tokens to {first} (quiet so far), or reword the prompt."
    else:
        remedy = "Reword the prompt until its first tokens are decided more clearly."
    return Finding(
        kind=FindingKind.TIE if one.band is Band.TIE else FindingKind.FLIPS,
        level=Level.WARNING,
        sentence=f"{one.canary!r} will not be quiet: {said}{more} (F = {floor:.3g}).",
        remedy=remedy,
        canaries=(one.canary,),
    )


def _said(close: Close, names: Names, text: bool) -> str:
    pair = f", {_name(close.top, names)} over {_name(close.second, names)}" if text else ""
    by = "exactly tied" if close.margin == 0 else f"by {close.margin:.3g} logits"
    scored = "" if close.scored else ", another token when scored instead of generated"
    seen = f", another token in {close.flipped} of {close.runs} disturbed scores" if close.flipped else ""
    return f"output token {close.position}{pair}, {by}{scored}{seen}"


def _name(token: int, names: Names) -> str:
    return repr(names[token]) if token in names else f"token {token}"


def _near(found: Sequence[Margins], floor: float) -> Iterator[Finding]:
    if not found:
        return
    each = ", ".join(f"{one.canary} ({len(one.close)}, first at {one.close[0].position})" for one in found)
    yield Finding(
        kind=FindingKind.NEAR,
        level=Level.NOTE,
        sentence=f"Margins below F = {floor:.3g} where nothing flipped, by canary (positions, first): {each}.",
        remedy="Nothing, while the stack stays: these show small changes first. On another kernel some may flip.",
        canaries=tuple(one.canary for one in found),
    )


def _far(found: Sequence[Margins], everything: Sequence[Margins]) -> Iterator[Finding]:
    if not found:
        return
    closest = min(found, key=lambda one: one.ratio)
    if len(found) == len(everything):
        who = f"All {len(found)} canaries are"
        remedy = (
            f"Usual in float32: there a text changes only when logits move by as much as {closest.smallest:.3g}. "
            "Smaller changes show as numbers (numeric, shifted)."
        )
    else:
        who = f"{len(found)} of {len(everything)} canaries are"
        remedy = "Their texts notice large changes only. If most are far, add open prompts (stories, lists, sums)."
    yield Finding(
        kind=FindingKind.FAR,
        level=Level.NOTE,
        sentence=f"{who} far from any tie (every margin above {FAR:g} F); the closest is {closest.canary!r}, output "
        f"token {closest.at}: {closest.smallest:.3g} logits, {closest.ratio:.3g} F.",
        remedy=remedy,
        canaries=tuple(one.canary for one in found),
    )
