"""One signed POST per message. Follows no redirect, reads no answer's body, tells no address and no secret.

Address and secret are read again at every attempt, so that they can be changed while the monitor runs.
"""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx2

from driftpin.canonical import canonical_json
from driftpin.errors import ConfigError
from driftpin.settings.secret import Secret
from monitor.channels import signature
from monitor.channels.channel import DeliveryError, Message

TIMEOUT_SECONDS = 15.0
AGAIN = frozenset({408, 425, 429})  # refusals that are about now, not about the message
SCHEMES = ("https", "http")
AGENT = "driftpin-monitor"


@dataclass(frozen=True, kw_only=True)
class WebhookChannel:
    """Without a `secret` messages go unsigned."""

    url: str | Secret
    secret: Secret | None = None
    timeout_seconds: float = TIMEOUT_SECONDS  # for connecting, sending and waiting, each

    def send(self, message: Message) -> None:
        """POST the body as canonical JSON; any 2xx is a success. Raises `DeliveryError`."""
        body = canonical_json(message.body)
        url, key = self._address(), self._key()
        headers = signature.headers(key, message.id, message.at, body)
        headers |= {"content-type": "application/json", "user-agent": AGENT}
        try:
            with (
                httpx2.Client(follow_redirects=False, timeout=self.timeout_seconds) as client,
                client.stream("POST", url, content=body, headers=headers) as response,
            ):
                status, wait = response.status_code, response.headers.get("retry-after")
        except httpx2.TimeoutException:
            raise DeliveryError(f"no answer within {self.timeout_seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Their texts may hold the address, and with it a token: only the type is told.
            raise DeliveryError(f"the receiver could not be reached ({type(error).__name__})") from None
        _refuse(status, wait, message.at)

    def _address(self) -> str:
        try:
            url = self.url if isinstance(self.url, str) else self.url.read().strip()
            parts = urlsplit(url)
        except ConfigError as error:
            raise DeliveryError(str(error)) from None
        except ValueError:
            raise DeliveryError("the address is not a URL") from None
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise DeliveryError(f"the address is no {' or '.join(SCHEMES)} address")
        return url

    def _key(self) -> bytes | None:
        try:
            return None if self.secret is None else signature.key_of(self.secret.read())
        except ConfigError as error:
            raise DeliveryError(str(error)) from None


def _refuse(status: int, wait: str | None, now: datetime) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise DeliveryError(f"the receiver answered {status}: redirects are not followed", permanent=True)
    permanent = 400 <= status < 500 and status not in AGAIN
    raise DeliveryError(f"the receiver answered {status}", permanent=permanent, retry_after=_seconds(wait, now))


def _seconds(value: str | None, now: datetime) -> float | None:
    """Retry-After is a number of seconds or a date; anything else is as if it were not there."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        at = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
