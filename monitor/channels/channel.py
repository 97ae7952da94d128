"""The plug point of channels: a message in, nothing out, or one error that says whether to try again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from driftpin.errors import DriftpinError


@dataclass(frozen=True, kw_only=True)
class Message:
    """One alert on its way; `id` is the same at every attempt, so that a receiver can tell a repeat."""

    id: str
    at: datetime  # of this attempt
    body: Mapping[str, Any]  # driftpin.alert/1


class DeliveryError(DriftpinError):
    """The channel did not take the message.

    The message names no address, no secret and nothing that the receiver answered. `permanent`: trying again is
    useless. `retry_after` (seconds): the receiver asked for that pause.
    """

    def __init__(self, message: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        self.permanent, self.retry_after = permanent, retry_after
        super().__init__(message)


class Channel(Protocol):
    """Sends one message at a time."""

    def send(self, message: Message) -> None:
        """Returns once the receiver has it; raises `DeliveryError`."""
