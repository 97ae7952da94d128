"""Clean sampling: every generation setting classified, and the recipe's mode put in force."""

from runner.sampling.effect import Effect, Setting
from runner.sampling.install import end_ids, generate_kwargs, install
from runner.sampling.installed import known_names
from runner.sampling.report import SamplingReport, would_have_applied
from runner.sampling.table import SETTINGS

__all__ = [
    "SETTINGS",
    "Effect",
    "SamplingReport",
    "Setting",
    "end_ids",
    "generate_kwargs",
    "install",
    "known_names",
    "would_have_applied",
]
