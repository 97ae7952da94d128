"""Suites of canaries: what is asked of a model, from which files, and how its answers are checked.

Public names are found on first use: most callers need the values only, and validation is slow to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftpin.suite.canary import Canary, CanarySettings, Check, CheckKind, Message, Suite, input_digest

if TYPE_CHECKING:
    from driftpin.suite.builtin import builtin_suite
    from driftpin.suite.checks import CheckResult, run_check, run_checks
    from driftpin.suite.dump import dump_suite
    from driftpin.suite.importing import ImportReport, import_requests
    from driftpin.suite.load import load_suite, suite_from_json
    from driftpin.suite.revision import SuiteChanges, suite_changes
    from driftpin.suite.warnings import suite_warnings

__all__ = [
    "Canary",
    "CanarySettings",
    "Check",
    "CheckKind",
    "CheckResult",
    "ImportReport",
    "Message",
    "Suite",
    "SuiteChanges",
    "builtin_suite",
    "dump_suite",
    "import_requests",
    "input_digest",
    "load_suite",
    "run_check",
    "run_checks",
    "suite_changes",
    "suite_from_json",
    "suite_warnings",
]

_HOMES = {
    "CheckResult": "checks",
    "ImportReport": "importing",
    "SuiteChanges": "revision",
    "builtin_suite": "builtin",
    "dump_suite": "dump",
    "import_requests": "importing",
    "load_suite": "load",
    "run_check": "checks",
    "run_checks": "checks",
    "suite_changes": "revision",
    "suite_from_json": "load",
    "suite_warnings": "warnings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
