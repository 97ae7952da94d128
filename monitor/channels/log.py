"""The channel that is always there: one JSON line per message in the monitor's own log."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from monitor.channels.channel import Message

log = structlog.get_logger()


@dataclass(frozen=True)
class LogChannel:
    """Never fails."""

    def send(self, message: Message) -> None:
        """A sentence, the action, ids, and the whole alert."""
        body = message.body
        say = log.info if body["status"] == "resolved" else log.warning
        say(
            f"{body['status']}: {body['title']}",
            action="alert",
            message=message.id,
            incident=body["incident"],
            target=body["target"],
            severity=body["severity"],
            alert=dict(body),
        )
