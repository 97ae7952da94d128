"""The body of an alert, `driftpin.alert/1`. Pure: values in, JSON out. Knows no channel, store or clock.

A field is never renamed or removed within one version. Where a suite's text is hidden, nothing of prompts or outputs
is in the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from driftpin.canonical import json_float
from driftpin.environment.difference import Change, FactDifference
from driftpin.settings.policy import Severity
from driftpin.store.incident import Incident, IncidentEvent, IncidentEventKind, IncidentKind
from driftpin.workflow import shapes
from driftpin.workflow.assess import Assessment
from driftpin.workflow.confirm import Confirmation

ALERT = "driftpin.alert/1"
MOST_FACTS = 5  # of an environment difference
TITLE_LIMIT = 240  # characters


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """One look at one cause: what was seen, on which target, since when, and between which replays it began."""

    key: str
    kind: IncidentKind
    severity: Severity
    headline: str
    target: str
    device: str
    host: str
    since: datetime
    first_bad: str | None = None  # replay ids
    last_good: str | None = None
    assessment: Assessment | None = None  # None: there is nothing to compare
    differences: tuple[FactDifference, ...] = ()  # from last good to first bad, likeliest first
    confirmation: Confirmation | None = None
    owner: str | None = None
    show_text: bool = True
    next: tuple[str, ...] = ()  # commands

    @property
    def title(self) -> str:
        """One line, complete in itself."""
        line = f"{self.target}: {self.headline}"
        return line if len(line) <= TITLE_LIMIT else line[: TITLE_LIMIT - 1] + "…"


def alert(seen: Sighting) -> dict[str, Any]:
    """Everything that does not depend on the incident's state."""
    found = seen.assessment
    return {
        "schema": ALERT,
        "key": seen.key,
        "kind": seen.kind.value,
        "target": seen.target,
        "device": seen.device,
        "host": seen.host,
        "owner": seen.owner,
        "what": seen.headline,
        "since": seen.since.isoformat(),
        "last_good": seen.last_good,
        "first_bad": seen.first_bad,
        "environment_difference": shapes.differences(_likeliest(seen.differences)),
        "environment_differences_in_all": len(seen.differences),
        "canaries": {} if found is None else {o.value: n for o, n in found.verdict.counts.items()},
        "movement": None if found is None else _movement(found),
        "shift": None if found is None else shapes.shift(found.verdict.shift),
        "class": None if found is None else _class(found),
        "diagnosis": None if found is None else shapes.diagnosis(found.verdict.diagnosis),
        "because": None if found is None or found.attribution is None else found.attribution.likeliest,
        "first_divergence": None if found is None else _divergence(found, seen.show_text),
        "place": None if found is None or found.verdict.place is None else found.verdict.place.sentence,
        "confirmation": None if seen.confirmation is None else _confirmation(seen.confirmation),
        "unseen": [] if found is None else list(found.verdict.unseen),
        "next": list(seen.next) or ([] if found is None else shapes.next_commands(found)),
    }


def _likeliest(facts: tuple[FactDifference, ...]) -> tuple[FactDifference, ...]:
    """What is known to differ comes before what could not be read."""
    return tuple(sorted(facts, key=lambda fact: fact.kind is Change.UNDETERMINED))[:MOST_FACTS]


def _movement(found: Assessment) -> dict[str, Any] | None:
    """The largest over all executions, and the floors that they stand against."""
    moved = [t.movement for t in (found.comparison.changed if found.comparison else ()) if t.movement]
    if not moved:
        return None
    return {
        "executions": len(moved),
        "mean_abs_logprob": json_float(max(m.mean_abs_logprob for m in moved)),
        "max_abs_logprob": json_float(max(m.max_abs_logprob for m in moved)),
        "floor": None if found.floors is None else json_float(found.floors.logprob),
        "tie_floor": None if found.floors is None else json_float(found.floors.pair),
    }


def _class(found: Assessment) -> str | None:
    told = found.verdict.diagnosis
    return None if told is None or told.word is None else told.word.value


def _divergence(found: Assessment, text: bool) -> dict[str, Any] | None:
    first = found.verdict.first
    if first is None:
        return None
    limit = None if first.limit is None else json_float(first.limit)
    at = shapes.divergence(first.divergence, text)
    return {"canary": first.canary, "probe": first.probe, "limit": limit} | at


def _confirmation(confirmation: Confirmation) -> dict[str, Any]:
    return {
        "reproduced": confirmation.reproduced,
        "replays": list(confirmation.replays),
        "reason": confirmation.reason,
    }


def delivered(incident: Incident, event: IncidentEvent) -> dict[str, Any]:
    """What a channel sends for one event: the alert as it was then, with the incident's state."""
    payload: Mapping[str, Any] = event.payload
    over = event.kind is IncidentEventKind.RESOLVED
    return {
        **payload["body"]["alert"],
        "status": "resolved" if over else "firing",
        "event": event.kind.value,
        "severity": payload["severity"],
        "title": payload["title"],
        "incident": incident.id,
        "count": payload["count"],
        "resolved_because": payload.get("reason"),
        "at": event.at.isoformat(),
    }
