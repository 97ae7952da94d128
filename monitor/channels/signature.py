"""Signatures of webhooks after the Standard Webhooks specification 1.0 (standardwebhooks.com). Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import datetime

from driftpin.errors import ConfigError

PREFIX = "whsec_"
LEAST_BYTES = 16  # a shorter key is a mistake; the specification asks for 24 to 64


def key_of(secret: str) -> bytes:
    """The key within "whsec_<base64>"; `ConfigError`, which never repeats it, for anything else."""
    encoded = secret.removeprefix(PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or len(key) < LEAST_BYTES:
        raise ConfigError(
            "The webhook's secret is not usable.", remedy=f"Write {PREFIX} and the base64 of 24 to 64 random bytes."
        )
    return key


def headers(key: bytes | None, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """webhook-id, webhook-timestamp (whole seconds), and with a key webhook-signature: HMAC-SHA256 of id.time.body."""
    seconds = str(int(at.timestamp()))
    unsigned = {"webhook-id": message_id, "webhook-timestamp": seconds}
    if key is None:
        return unsigned
    signed = b".".join((message_id.encode(), seconds.encode(), body))
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return unsigned | {"webhook-signature": f"v1,{base64.b64encode(digest).decode('ascii')}"}
