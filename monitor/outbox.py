"""Emptying the outbox: each channel has a courier of its own, so that a dead one holds up no other.

A courier sends what one incident has to tell in order: nobody hears of an end before the beginning. Knows nothing of
how a channel sends.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from driftpin.errors import DriftpinError
from driftpin.store import Store
from driftpin.store.deliveries import Delivery
from monitor.backoff import ATTEMPTS, pause
from monitor.channels.channel import Channel, DeliveryError, Message
from monitor.message import delivered

LEASE = timedelta(minutes=2)  # of one attempt; longer than any channel takes
HORIZON = timedelta(days=3650)
BATCH = 10_000
POLL_SECONDS = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Courier:
    """Delivers to one channel."""

    store: Store
    name: str
    channel: Channel
    now: Callable[[], datetime]
    chance: Callable[[], float] = random.random

    def deliver_due(self) -> int:
        """One attempt for everything that is due; returns how many were sent."""
        return sum(self._attempt(delivery) for delivery in self._due())

    def _due(self) -> list[Delivery]:
        """Of each incident only the oldest delivery that waits, if its time has come."""
        waiting = [d for d in self.store.deliveries.due(self.now() + HORIZON, BATCH) if d.channel == self.name]
        first: dict[int, Delivery] = {}
        for delivery in sorted(waiting, key=lambda d: d.id):
            first.setdefault(self.store.incidents.event(delivery.event_id).incident_id, delivery)
        return [d for d in first.values() if d.next_at <= self.now()]

    def _attempt(self, delivery: Delivery) -> bool:
        if not self.store.deliveries.claim(delivery, self.now() + LEASE):
            return False
        event = self.store.incidents.event(delivery.event_id)
        body = delivered(self.store.incidents.get(event.incident_id), event)
        try:
            self.channel.send(Message(id=delivery.idempotency_key, at=self.now(), body=body))
        except DeliveryError as error:
            self._failed(delivery, error)
            return False
        self.store.deliveries.mark_sent(delivery.id)
        return True

    def _failed(self, delivery: Delivery, error: DeliveryError) -> None:
        attempt = delivery.attempts + 1
        final = error.permanent or attempt >= ATTEMPTS
        next_at = self.now() + pause(attempt, self.chance(), error.retry_after)
        self.store.deliveries.mark_failed(delivery.id, next_at, str(error), permanent=final)
        log.error(
            f"Channel {self.name} did not take a message: {error}.",
            action="delivery_dead" if final else "delivery_failed",
            delivery=delivery.id,
            message=delivery.idempotency_key,
            attempt=attempt,
            next_at=None if final else next_at.isoformat(),
        )


class Round(threading.Thread):
    """A courier's working day, until `stop`."""

    def __init__(self, courier: Courier, stop: threading.Event) -> None:
        super().__init__(name=f"courier-{courier.name}", daemon=True)
        self.courier, self.stop = courier, stop

    def run(self) -> None:
        """Whatever fails, the row is out of the way by its lease, and the round goes on."""
        while not self.stop.wait(POLL_SECONDS):
            try:
                while not self.stop.is_set() and self.courier.deliver_due():
                    pass  # a sent one may have freed the next of its incident
            except DriftpinError as error:
                log.error(f"The outbox cannot be read: {error}", action="outbox_failed", channel=self.courier.name)
            except Exception:  # a courier that dies would be silence
                log.exception("A courier failed.", action="courier_failed", channel=self.courier.name)


def couriers(
    store: Store, channels: Mapping[str, Channel], now: Callable[[], datetime], chance: Callable[[], float]
) -> list[Courier]:
    """One per channel."""
    return [Courier(store=store, name=n, channel=c, now=now, chance=chance) for n, c in channels.items()]
