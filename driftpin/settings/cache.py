"""Where driftpin keeps what it can make again: converted weights, file hashes. Knows nothing of what lies there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`DRIFTPIN_CACHE`, else `driftpin` below `XDG_CACHE_HOME`, else `~/.cache/driftpin`; not created here."""
    if named := environ.get("DRIFTPIN_CACHE"):
        return Path(named).expanduser()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "driftpin"
