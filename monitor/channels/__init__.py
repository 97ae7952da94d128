"""Ways to tell somebody. Each channel knows how to send one message, and nothing of incidents, retries or the store."""

from __future__ import annotations

from collections.abc import Mapping

from driftpin.settings.config import Config
from driftpin.settings.schema import ChannelTable
from monitor.channels.channel import Channel
from monitor.channels.log import LogChannel
from monitor.channels.webhook import WebhookChannel


def channels_of(config: Config) -> Mapping[str, Channel]:
    """Every configured channel by name, the log that is always there included."""
    return {name: _channel(table) for name, table in config.channels.items()}


def _channel(table: ChannelTable) -> Channel:
    if table.kind == "log" or table.url is None:
        return LogChannel()
    return WebhookChannel(url=table.url, secret=table.secret)
