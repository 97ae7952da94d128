"""What `driftpin init` writes. Knows the files' texts and names, and neither writes nor reads the user's folder."""

from __future__ import annotations

from importlib.resources import files

_STARTER = "driftpin.settings.starter"
SUITE_FILE = "suites/sample.yaml"  # where the starter's suite belongs, beside driftpin.toml


def starter_config() -> str:
    """A commented `driftpin.toml` that loads as it is and has a target on the fake engine."""
    return (files(_STARTER) / "driftpin.toml").read_text("utf-8")


def starter_suite() -> str:
    """The suite that the starter names under `SUITE_FILE`."""
    return (files(_STARTER) / "sample.yaml").read_text("utf-8")


def starter_files() -> dict[str, str]:
    """Text by path relative to the folder that is initialised."""
    return {"driftpin.toml": starter_config(), SUITE_FILE: starter_suite()}
