"""The monitor's own log: one JSON object per line on standard error. Nothing is set up at import."""

from __future__ import annotations

import logging
import sys

import structlog

QUIET = ("httpx2", "httpcore2")  # they log whole addresses, which may hold tokens


def configure() -> None:
    """Sentences under `event`, with `action`, ids, `level` and the time in UTC."""
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # the one in force when a line is written
        cache_logger_on_first_use=False,
    )
