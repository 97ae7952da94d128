"""The suite that driftpin brings."""

from __future__ import annotations

from importlib.resources import files

from driftpin.suite.canary import Suite


def builtin_suite() -> Suite:
    """The suite `core`: about a dozen short canaries over what breaks most often."""
    import yaml  # noqa: PLC0415 - start-up time

    from driftpin.suite.load import suite_of  # noqa: PLC0415

    text = (files(__name__) / "core.yaml").read_text("utf-8")
    return suite_of(yaml.safe_load(text), "the built-in suite")
