"""Says how much an installation of some locks will download, before it does. Standard library only: no venv exists yet.

Usage: announce.py ROLE...   with roles as in locks/sizes.toml
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

SIZES = Path(__file__).resolve().parent.parent / "locks" / "sizes.toml"


def sentence(sizes: dict[str, int], roles: list[str]) -> str:
    """The announcement for these roles, in megabytes (10^6 bytes)."""
    total = sum(sizes[role] for role in roles)
    parts = ", ".join(f"{role} {megabytes(sizes[role])}" for role in roles)
    return f"driftpin: downloading about {megabytes(total)} ({parts}), less what pip already has in its cache."


def megabytes(size: int) -> str:
    """Bytes as a whole number of megabytes, at least one."""
    return f"{max(1, round(size / 1e6))} MB"


if __name__ == "__main__":
    print(sentence(tomllib.loads(SIZES.read_text()), sys.argv[1:]), flush=True)
