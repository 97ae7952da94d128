"""The suite that driftpin brings, as package data."""

from __future__ import annotations

from importlib.resources import files

from driftpin.suite.canary import Suite


def builtin_suite() -> Suite:
    """The suite `core`: about a dozen short canaries over what breaks most often."""
    from driftpin.suite.document import parse_yaml  # noqa: PLC0415 - start-up time
    from driftpin.suite.load import suite_from_json  # noqa: PLC0415

    source = "the built-in suite"
    return suite_from_json(parse_yaml((files(__name__) / "core.yaml").read_text("utf-8"), source), source=source)
