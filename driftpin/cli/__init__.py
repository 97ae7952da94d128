"""The command line: a thin shell around the kernel. It starts without torch, in half a second."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of `driftpin`."""
    from driftpin.cli.app import run  # noqa: PLC0415 - importing this package must cost nothing

    sys.exit(run(sys.argv[1:]))
