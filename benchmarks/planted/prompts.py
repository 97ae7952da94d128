"""The matrix's own canaries, in two halves. Knows the suite file; nothing of models."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from driftpin.suite.canary import Suite
from driftpin.suite.load import load_suite

FILE = Path(__file__).with_name("suite.yaml")


class Half(StrEnum):
    """Which prompts are asked."""

    FIT = "fit"  # thresholds may be looked at here
    HELD = "held"  # what is reported


def suite_of(half: Half, count: int | None = None) -> Suite:
    """The first `count` canaries of one half, all without it."""
    whole = load_suite(FILE)
    chosen = tuple(c for c in whole.canaries if c.id.startswith(f"{half.value}-"))
    return replace(whole, name=f"{whole.name}-{half.value}", canaries=chosen[:count])
