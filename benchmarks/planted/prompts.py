"""The matrix's own canaries, in three parts of twelve. Knows the suite file; nothing of models."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from driftpin.suite.canary import Suite
from driftpin.suite.load import load_suite

FILE = Path(__file__).with_name("suite.yaml")


class Part(StrEnum):
    """Which prompts are asked."""

    FRESH = "fresh"  # written when the other two had been read, and run when the rules stood: what is reported
    HELD = "held"  # held out until it was read
    FIT = "fit"  # thresholds may be looked at here


def suite_of(part: Part, count: int | None = None) -> Suite:
    """The first `count` canaries of one part, all without it."""
    whole = load_suite(FILE)
    chosen = tuple(c for c in whole.canaries if c.id.startswith(f"{part.value}-"))
    return replace(whole, name=f"{whole.name}-{part.value}", canaries=chosen[:count])
