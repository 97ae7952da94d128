"""What no replay tells: that none came in time, and that a person has accepted a change meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from driftpin.store import Store
from driftpin.store.incident import Incident, IncidentKind
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.verdict.kind import VerdictKind
from monitor import cause
from monitor.desk import Desk
from monitor.message import Sighting
from monitor.wanted import Wanted


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Looks at the store and the clock; runs nothing."""

    store: Store
    desk: Desk
    now: Callable[[], datetime]

    def overdue(self, wanted: Wanted) -> None:
        """Open an incident when no replay has finished until the deadline of the one after the last."""
        base = self._base(wanted)
        if self.now() <= wanted.schedule.deadline(base):
            return
        if self.desk.open(wanted.target, {IncidentKind.OVERDUE, IncidentKind.CANNOT_MEASURE}):
            return  # known already, or its cause is
        last = next(iter(self.store.replays.list(wanted.target, series=wanted.series, limit=1)), None)
        self.desk.see(wanted, _late(wanted, base, last))

    def _base(self, wanted: Wanted) -> datetime:
        """Due time of the last finished replay; for a target that never had one, when it was first watched."""
        finished = self.store.replays.list(wanted.target, series=wanted.series, status=ReplayStatus.FINISHED, limit=1)
        if finished:
            return finished[0].due or finished[0].created_at
        mark = f"watched/{wanted.series}"
        since = self.store.schedules.last_due(mark)
        if since is None:
            since = self.now()
            self.store.schedules.set_due(mark, since)
        return since

    def accepted(self, wanted: Wanted) -> None:
        """Resolve what a newer baseline has made its own; if it has not, the next replay opens it under a new key."""
        for incident in self.desk.open(wanted.target, cause.CHANGES):
            if reason := self._blessing_since(incident):
                self.desk.end(incident, reason)

    def _blessing_since(self, incident: Incident) -> str | None:
        judged = incident.body.get("baseline")
        if judged is None:
            return None
        old = self.store.baselines.get(judged)
        new = self.store.baselines.current(old.target, old.device_class)
        if new is None or new.id <= old.id:
            return None
        return f"baseline {new.number} was blessed by {new.blessed_by}: {new.reason}"


def _late(wanted: Wanted, base: datetime, last: Replay | None) -> Sighting:
    state = f"; the last one, {last.id}, is {last.status.value}" if last else ""
    why = f" ({wanted.tellable(last.reason)})" if last and last.reason else ""
    return Sighting(
        key=cause.incident_key(wanted.target, IncidentKind.OVERDUE),
        kind=IncidentKind.OVERDUE,
        severity=wanted.policy.severity(VerdictKind.INCOMPLETE.value, same_stack=True),
        headline=f"overdue: no replay has finished since {base:%Y-%m-%d %H:%M} UTC{state}{why}",
        target=wanted.target,
        device=wanted.order.recipe.device,
        host=last.host if last else "",
        since=base,
        owner=wanted.owner,
        show_text=wanted.show_text,
        next=(f"driftpin replays {wanted.target}", f"driftpin replay {wanted.target}"),
    )
