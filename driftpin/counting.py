"""Numbers in sentences. Knows nothing else."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """ "1 canary", "2 canaries": `many` where it is not `one` with an s."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def canaries_counted(count: int) -> str:
    """The same of the unit that is counted most."""
    return counted(count, "canary", "canaries")
