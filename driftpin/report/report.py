"""`report`: an assessment and its store in, one HTML page out. The same input gives the same bytes.

Every word comes from the documented JSON of `driftpin compare`; only the sequences are read from the store. Canaries
are drawn until `BUDGET` is used, and the page says which are only listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from driftpin.errors import NotFoundError
from driftpin.report import page
from driftpin.report.bullet import Bullet, bullet
from driftpin.report.canaries import CanaryLine, changed_canaries, counts, identical_canaries
from driftpin.report.profile import layer_profile
from driftpin.report.sequence import sequence_figure
from driftpin.report.strand import Strand, Strands
from driftpin.report.strip import Strip, strip
from driftpin.report.tokens import token_diff
from driftpin.store import Store
from driftpin.verdict.floors import Floors
from driftpin.verdict.shift import Shift
from driftpin.workflow import shapes
from driftpin.workflow.assess import Assessment
from driftpin.workflow.references import Reference

SUGGESTED = 12  # canaries named to somebody who named none of them
BUDGET = 3_000_000  # characters of drawn canaries; one of 128 tokens takes about 70,000


def report(
    store: Store, found: Assessment, *, strict: bool = False, text: bool = True, first: Sequence[str] = ()
) -> str:
    """The page; `text = False` leaves out what quotes a prompt or an output, `first` names canaries to draw first.

    Raises `NotFoundError` for a name in `first` that neither side knows.
    """
    body = shapes.assessment(found, strict=strict, text=text)
    _refuse_unknown(first, body)
    strands = Strands.of(store, found, text=text)
    floors = found.floors
    lines = changed_canaries(body, first)
    drawn = _drawn(lines, strands, floors)
    return page.whole_page(
        body=body,
        text=text,
        sides=_sides(found),
        counts=counts(body),
        shift=_shift(found.verdict.shift),
        strip=_strip(found),
        first=_first(body, strands),
        tie=_tie(body["first_divergence"]),
        profiles=tuple(_profiles(found, body)),
        drawn=drawn,
        listed=lines[len(drawn) :],
        identical=identical_canaries(body),
    )


def _refuse_unknown(names: Sequence[str], body: Mapping[str, Any]) -> None:
    known = body["outcomes"]
    for name in names:
        if name not in known:
            listed = ", ".join(list(known)[:SUGGESTED]) + ("" if len(known) <= SUGGESTED else ", …")
            raise NotFoundError(f"Neither side has a canary {name!r}.", remedy=f"There are: {listed}.")


def _drawn(lines: Sequence[CanaryLine], strands: Strands, floors: Floors | None) -> tuple[Markup, ...]:
    """Canaries in full until the budget is used; the first always."""
    done: list[Markup] = []
    left = BUDGET
    for line in lines:
        made = page.render("canary.html.j2", **_canary(line, strands, floors))
        left -= len(made)
        if done and left < 0:
            break
        done.append(Markup(made))  # noqa: S704 - a template's output
    return tuple(done)


def _canary(line: CanaryLine, strands: Strands, floors: Floors | None) -> Mapping[str, Any]:
    pictures = [
        {
            "strand": strand,
            "diff": token_diff(strand),
            "figure": sequence_figure(strand, f"c{line.number}-{strand.key.probe.value}", floors),
            "divergence": _divergence(strand),
        }
        for strand in strands.drawn(line.name)
    ]
    return {"line": line, "pictures": pictures, "open": line.number == 0, "text": strands.text}


def _divergence(strand: Strand) -> Mapping[str, Any] | None:
    return None if strand.divergence is None else shapes.divergence(strand.divergence, strand.text)


def _first(body: Mapping[str, Any], strands: Strands) -> Mapping[str, Any] | None:
    """The first divergence with the tokens around it."""
    told = body["first_divergence"]
    if told is None:
        return None
    strand = strands.one(told["canary"], told["probe"], told["shape"])
    return {"told": told, "diff": None if strand is None else token_diff(strand)}


def _shift(size: Shift | None) -> Bullet | None:
    """The mean movement against rounding's own and what it may reach."""
    if size is None:
        return None
    levels = (
        ("yardstick", "rounding alone", size.yardstick),
        ("limit", f"{size.limit:g} × that, the limit", None if size.yardstick is None else size.limit * size.yardstick),
        ("value", "this replay", size.mean),
    )
    return bullet("mean |Δ log-prob| of the candidate against the rounding yardstick", levels)


def _tie(told: Mapping[str, Any] | None) -> Bullet | None:
    """D against F, and the two margins."""
    if told is None:
        return None
    margins = (
        ("baseline", "baseline's margin", told["baseline_margin"]),
        ("candidate", "candidate's margin", told["candidate_margin"]),
    )
    return bullet("D against F", (*margins, ("limit", "F", told.get("limit")), ("value", "D", told["movement"])))


def _strip(found: Assessment) -> Strip | None:
    """Distances to the reference, of the probe that the diagnosis goes by."""
    evidence, told = found.reference, found.verdict.diagnosis
    if evidence is None or told is None:
        return None
    deciding = next((test.probe for test in told.tests if test.ratio == told.ratio), None)
    return None if deciding is None else strip(evidence.distances, deciding)


def _profiles(found: Assessment, body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The layer profile of each arm that recorded one; the named block stands in the arm that named it."""
    place = body["localisation"] or {}
    arms = [("native", found.comparison, found.floors)]
    if found.reference is not None:
        arms.append(("reference", found.reference.comparison, found.reference.floors))
    for arm, comparison, measured in arms:
        named = place.get("block") if (place.get("arm") or "native") == arm else None
        made = layer_profile(comparison.changed, measured, named, f"blocks-{arm}") if comparison else None
        if made is not None:
            yield {"arm": arm, "figure": made}


def _sides(found: Assessment) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """What is compared, in words."""
    told = [("candidate", _side(found.candidate))]
    if found.baseline is not None:
        told.insert(0, ("baseline", _side(found.baseline)))
    return tuple(told)


def _side(side: Reference) -> Mapping[str, str]:
    replay, blessed = side.replay, side.baseline
    facts = {
        "reference": side.label,
        "target": replay.target,
        "replay": replay.id,
        "device class": replay.device_class or "unknown",
        "host": replay.host or "unknown",
        "finished": "" if replay.finished_at is None else f"{replay.finished_at:%Y-%m-%d %H:%M} UTC",
    }
    if blessed is not None:
        facts |= {"blessed by": blessed.blessed_by, "because": blessed.reason}
    return {name: value for name, value in facts.items() if value}
