"""The incident desk: turns sightings into opened, updated and resolved incidents, and decides who is told.

Somebody is told when a state changes, not when a sample repeats. Knows nothing of verdicts or of how channels send.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from driftpin.settings.policy import Severity
from driftpin.store import Store
from driftpin.store.incident import Incident, IncidentKind
from monitor.message import Sighting, alert
from monitor.wanted import Wanted

QUIET = timedelta(hours=1)  # between two notifications that an open incident became louder

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One per monitor; only the leader writes incidents."""

    store: Store
    now: Callable[[], datetime]

    def open(self, target: str, kinds: Collection[IncidentKind]) -> list[Incident]:
        """Unresolved incidents of those kinds."""
        return [i for i in self.store.incidents.unresolved(target) if i.kind in kinds]

    def find(self, key: str, target: str) -> Incident | None:
        """The unresolved incident of that cause."""
        return next((i for i in self.store.incidents.unresolved(target) if i.key == key), None)

    def see(self, wanted: Wanted, seen: Sighting, extra: dict[str, Any] | None = None) -> None:
        """Open an incident, or note that its cause was seen again. One that nobody would be told of is not opened."""
        old = self.find(seen.key, seen.target)
        channels = wanted.channels(seen.severity)
        if old is None and not channels and seen.severity in (Severity.INFO, Severity.NONE):
            return
        told, notes = self._notes(old, seen.severity, channels)
        incident, event = self.store.incidents.open_or_update(
            seen.key,
            target=seen.target,
            kind=seen.kind,
            severity=seen.severity.value,
            title=seen.title,
            body={"alert": alert(seen), **(extra or {}), **notes},
            first_bad=seen.first_bad,
            last_good=seen.last_good,
            channels=told,
        )
        if event is not None:
            log.warning(
                f"Incident {incident.id} {event.kind.value}: {incident.title}",
                action=f"incident_{event.kind.value}",
                incident=incident.id,
                target=incident.target,
                kind=incident.kind.value,
                severity=incident.severity,
            )

    def _notes(
        self, old: Incident | None, severity: Severity, channels: Collection[str]
    ) -> tuple[list[str], dict[str, Any]]:
        """Whom to tell now; and for next time who was told, how loudly at most, and when that last grew."""
        if old is None:
            return list(channels), {"told": list(channels), "loudest": severity.value, "louder_at": None}
        notes = {name: old.body[name] for name in ("told", "loudest", "louder_at")}
        last = notes["louder_at"]
        quiet = last is not None and self.now() - datetime.fromisoformat(last) < QUIET
        if severity.rank <= Severity(notes["loudest"]).rank or quiet:
            return [], notes
        told = list(dict.fromkeys([*notes["told"], *channels]))
        return list(channels), {"told": told, "loudest": severity.value, "louder_at": self.now().isoformat()}

    def resolve(self, target: str, kinds: Collection[IncidentKind], reason: str, but: str | None = None) -> None:
        """End every open incident of those kinds, except the one under the key `but`; those who were told hear it."""
        for incident in self.open(target, kinds):
            if incident.key != but:
                self.end(incident, reason)

    def end(self, incident: Incident, reason: str) -> None:
        """Resolve one incident."""
        if self.store.incidents.resolve(incident.id, reason, incident.body["told"]) is not None:
            log.info(
                f"Incident {incident.id} is over: {reason}.",
                action="incident_resolved",
                incident=incident.id,
                target=incident.target,
                kind=incident.kind.value,
            )
