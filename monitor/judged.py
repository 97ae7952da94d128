"""How far each series has been judged: a mark in the store that survives a restart. Knows nothing of verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from driftpin.store import Store
from driftpin.store.replay import ENDED, Replay
from monitor.wanted import Wanted

LOOK_BACK = 200  # replays of one series


@dataclass(frozen=True)
class Judged:
    """The order of creation within a series is the order of judgement."""

    store: Store

    def unjudged(self, wanted: Wanted) -> list[Replay]:
        """Ended replays behind the mark, oldest first."""
        mark = self.store.schedules.last_due(_mark(wanted.series))
        recent = self.store.replays.list(wanted.target, series=wanted.series, limit=LOOK_BACK)
        fresh = [r for r in recent if mark is None or r.created_at > mark]
        return [r for r in reversed(fresh) if r.status in ENDED]

    def move(self, replay: Replay) -> None:
        """The replay is judged, or needs no judgement."""
        if replay.series is not None:
            self.store.schedules.set_due(_mark(replay.series), replay.created_at)


def _mark(series: str) -> str:
    return f"judged/{series}"
