"""Says how much an installation of some locks will download, before it does. Needs the standard library only.

Usage: announce.py LOCK...   as in `announce.py torch-cpu runner`; run it with the Python that will be installed into
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

LOCKS = Path(__file__).resolve().parent.parent / "locks"
PIN = re.compile(r"^[a-z0-9][^ ;]*==[^ ;]+", re.MULTILINE)  # name==version at the start of a lock's entry


def missing_bytes(lock: str, sizes: dict[str, int], present: set[str]) -> dict[str, int]:
    """Bytes by pin of what a lock would add; packages for other machines have no size and do not count."""
    pins = PIN.findall((LOCKS / f"{lock}.txt").read_text())
    return {pin: sizes[pin] for pin in pins if pin in sizes and pin not in present}


def installed() -> set[str]:
    """Every `name==version` in this interpreter, names as locks write them."""
    return {f"{re.sub(r'[-_.]+', '-', d.name).lower()}=={d.version}" for d in distributions()}


def sentence(wanted: dict[str, int]) -> str:
    """The announcement, in megabytes (10^6 bytes), with what is large named."""
    total = sum(wanted.values())
    large = [pin for pin, size in wanted.items() if size > total / 8]
    named = ", ".join(f"{pin} {megabytes(wanted[pin])}" for pin in large)
    of_which = f" ({named})" if named else ""
    return f"driftpin: downloading about {megabytes(total)}{of_which}, less what pip's cache already has."


def megabytes(size: int) -> str:
    """Bytes as a whole number of megabytes, at least one."""
    return f"{max(1, round(size / 1e6))} MB"


def main(locks: list[str]) -> None:
    """Print the sentence, or nothing where all is installed."""
    sizes, present = tomllib.loads((LOCKS / "sizes.toml").read_text()), installed()
    wanted: dict[str, int] = {}
    for lock in locks:
        wanted |= missing_bytes(lock, sizes, present)
    if wanted:
        print(sentence(wanted), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
