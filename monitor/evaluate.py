"""From ended replays to incidents: assess, confirm, see, resolve. Knows nothing of channels.

A replay that failed is a case of `cannot_measure`, never of drift; one that was interrupted or skipped says nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from driftpin.environment.difference import FactDifference, difference
from driftpin.environment.environment import Equality, Section
from driftpin.errors import CorruptBlobError, DriftpinError, ReplayInterruptedError, StoreError
from driftpin.settings.policy import Severity
from driftpin.store import Store
from driftpin.store.incident import IncidentKind
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.assess import Assessment, assess_replay
from driftpin.workflow.confirm import Confirmation, confirm, worth_confirming
from driftpin.workflow.refer import refer, worth_referring
from driftpin.workflow.sides import environment
from monitor import cause
from monitor.desk import Desk
from monitor.judged import Judged
from monitor.message import Sighting
from monitor.wanted import Wanted

LOOK_BACK = 500  # replays of one series, for the last good one
UNJUDGED = "replay {} cannot be judged: {}"
GOOD = (VerdictKind.MATCH.value, VerdictKind.NUMERIC.value)

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Judges each replay once, in order; one whose judgement was interrupted is judged again."""

    store: Store
    url: str
    desk: Desk
    judged: Judged
    stop: threading.Event

    def judge_ended(self, wanted: Wanted) -> None:
        """Every ended replay of the target's series that was not judged yet."""
        for replay in self.judged.unjudged(wanted):
            try:
                self._judge(wanted, replay)
            except ReplayInterruptedError:
                return
            except CorruptBlobError as error:
                self._cannot_measure(wanted, replay, UNJUDGED.format(replay.id, error))
            except StoreError:
                raise  # the store is not well: nothing is decided, and the same replay is judged later
            except DriftpinError as error:
                self._cannot_measure(wanted, replay, UNJUDGED.format(replay.id, error))
            except Exception as error:
                self._cannot_measure(wanted, replay, f"judging replay {replay.id} failed: {type(error).__name__}")
                self.judged.move(replay)  # out of the way, or every restart would stumble over it
                raise
            self.judged.move(replay)

    def _judge(self, wanted: Wanted, replay: Replay) -> None:
        if replay.status is ReplayStatus.FAILED:
            self._cannot_measure(wanted, replay, wanted.tellable(replay.reason))
        elif replay.status is ReplayStatus.FINISHED:
            self._finished(wanted, replay)

    def _finished(self, wanted: Wanted, replay: Replay) -> None:
        found = assess_replay(self.store, replay, wanted.policy)
        found, confirmation = self._confirmed(wanted, replay, found)
        found = self._referred(wanted, replay, found)
        kind = cause.kind_of(found)
        log.info(
            f"Replay {replay.id} of {replay.target}: {found.verdict.headline}.",
            action="judged",
            replay=replay.id,
            target=replay.target,
            verdict=found.verdict.kind.value,
            severity=found.verdict.severity.value,
        )
        measured = f"replay {replay.id} finished"
        self.desk.resolve(wanted.target, {IncidentKind.OVERDUE}, measured)
        if confirmation.reason is not None:
            why = wanted.tellable(confirmation.reason)
            confirmation = replace(confirmation, reason=why)
            headline = f"a change was seen ({found.verdict.headline}) but not repeated: {why}"
            self._see(wanted, replay, found, IncidentKind.CANNOT_MEASURE, headline, confirmation)
            return
        if kind is not IncidentKind.CANNOT_MEASURE:
            self.desk.resolve(wanted.target, {IncidentKind.CANNOT_MEASURE}, measured)
        if cause.acceptable(found):
            self.desk.resolve(wanted.target, cause.CHANGES, f"replay {replay.id}: {found.verdict.headline}")
        if kind is not None:
            seen = self._see(wanted, replay, found, kind, found.verdict.headline, confirmation)
            self.desk.resolve(wanted.target, {kind}, f"superseded: replay {replay.id} shows another cause", but=seen)

    def _confirmed(self, wanted: Wanted, replay: Replay, found: Assessment) -> tuple[Assessment, Confirmation]:
        """Repeat a change that would open an incident; one that is open already needs no further proof."""
        kind = cause.kind_of(found)
        if kind is None or not worth_confirming(found.verdict) or not self._opens(wanted, found, kind):
            return found, Confirmation()
        log.info(f"Confirming the change in replay {replay.id}.", action="confirm", replay=replay.id)
        confirmation = confirm(
            self.store,
            self.url,
            replay,
            wanted.policy.confirm,
            _unheard,
            limit_seconds=wanted.limit_seconds,
            stop=self.stop,
        )
        if confirmation.reproduced is None:
            return found, confirmation
        return assess_replay(self.store, replay, wanted.policy, confirmation.reproduced), confirmation

    def _referred(self, wanted: Wanted, replay: Replay, found: Assessment) -> Assessment:
        """The reference arm's word on what would be told, or on a stack that its baseline never saw."""
        kind = cause.kind_of(found)
        told = kind is not None and self._opens(wanted, found, kind)
        if not worth_referring(found) or not (told or _new_ground(found)):
            return found
        log.info(f"Running the reference arm beside replay {replay.id}.", action="refer", replay=replay.id)
        referred = refer(self.store, self.url, replay, _unheard, limit_seconds=wanted.limit_seconds, stop=self.stop)
        if referred.replay is None:
            log.warning(f"No reference for {replay.id}: {referred.absent}.", action="refer", replay=replay.id)
        return assess_replay(self.store, self.store.replays.get(replay.id), wanted.policy, found.reproduced)

    def _opens(self, wanted: Wanted, found: Assessment, kind: IncidentKind) -> bool:
        loud = found.verdict.severity in (Severity.TICKET, Severity.PAGE)
        if not loud and not wanted.channels(found.verdict.severity):
            return False
        key = cause.incident_key(wanted.target, kind, cause.environments_of(found))
        known = self.desk.find(key, wanted.target)
        return known is None or Severity(known.severity).rank < found.verdict.severity.rank

    def _see(
        self,
        wanted: Wanted,
        replay: Replay,
        found: Assessment,
        kind: IncidentKind,
        headline: str,
        confirmation: Confirmation,
    ) -> str:
        """Report the sight of one cause; returns its key."""
        key = cause.incident_key(wanted.target, kind, cause.environments_of(found))
        old = self.desk.find(key, wanted.target)
        first_bad = old.first_bad if old and old.first_bad else replay.id
        last_good = old.last_good if old else self._last_good(wanted, replay, found)
        seen = Sighting(
            key=key,
            kind=kind,
            severity=found.verdict.severity,
            headline=headline,
            target=wanted.target,
            device=found.candidate.replay.device,
            host=found.candidate.replay.host,
            since=self.store.replays.get(first_bad).created_at,
            first_bad=first_bad,
            last_good=last_good,
            assessment=found,
            differences=self._differences(last_good, first_bad),
            confirmation=confirmation if confirmation.replays else _earlier(old.body if old else {}),
            owner=wanted.owner,
            show_text=wanted.show_text,
        )
        self.desk.see(wanted, seen, {"baseline": _baseline_id(found)})
        return key

    def _last_good(self, wanted: Wanted, replay: Replay, found: Assessment | None) -> str | None:
        """The newest replay of the series before this one that matched, else the baseline's own."""
        past = self.store.replays.list(
            wanted.target, series=wanted.series, status=ReplayStatus.FINISHED, limit=LOOK_BACK
        )
        good = next((r.id for r in past if r.created_at < replay.created_at and r.verdict in GOOD), None)
        return good or (found.baseline.replay.id if found and found.baseline else None)

    def _differences(self, last_good: str | None, first_bad: str) -> tuple[FactDifference, ...]:
        if last_good is None:
            return ()
        before, after = (self.store.replays.get(replay) for replay in (last_good, first_bad))
        if after.environment is None:
            return ()  # it ended before it had said where it ran: no facts are not changed facts
        return difference(environment(self.store, before), environment(self.store, after))

    def _cannot_measure(self, wanted: Wanted, replay: Replay, reason: str) -> None:
        """As loud as an incomplete replay."""
        key = cause.incident_key(wanted.target, IncidentKind.CANNOT_MEASURE)
        old = self.desk.find(key, wanted.target)
        first_bad = old.first_bad if old and old.first_bad else replay.id
        last_good = old.last_good if old else self._last_good(wanted, replay, None)
        seen = Sighting(
            key=key,
            kind=IncidentKind.CANNOT_MEASURE,
            severity=wanted.policy.severity(VerdictKind.INCOMPLETE.value, same_stack=True),
            headline=f"cannot be measured: {reason}",
            target=wanted.target,
            device=replay.device,
            host=replay.host,
            since=self.store.replays.get(first_bad).created_at,
            first_bad=first_bad,
            last_good=last_good,
            differences=self._differences(last_good, first_bad),
            owner=wanted.owner,
            show_text=wanted.show_text,
            next=(f"driftpin replay {wanted.target}",),
        )
        self.desk.see(wanted, seen)


def _new_ground(found: Assessment) -> bool:
    """A stack or model that differs from the baseline's."""
    told = found.equalities or {}
    return Equality.DIFFERENT in (told.get(Section.MODEL), told.get(Section.STACK))


def _baseline_id(found: Assessment) -> int | None:
    blessed = found.baseline.baseline if found.baseline else None
    return blessed.id if blessed else None


def _earlier(body: Mapping[str, Any]) -> Confirmation | None:
    """What the opening of a known incident was confirmed by."""
    told = (body.get("alert") or {}).get("confirmation")
    return None if told is None else Confirmation(**{**told, "replays": tuple(told["replays"])})


def _unheard(event: Mapping[str, Any]) -> None:
    """Progress of a repeat interests nobody here."""
