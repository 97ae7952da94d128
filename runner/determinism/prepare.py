"""Sets every switch of `flags` for one recipe and arm, and reads all of them back. Call once, before CUDA starts."""

from __future__ import annotations

from collections.abc import Mapping

from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm
from runner.determinism import flags
from runner.determinism.applied import Applied, read_back
from runner.determinism.flags import Flag

SEED = 0
WARN = "warn"


def prepare(recipe: Recipe, arm: Arm) -> Applied:
    """Make this process deterministic; never raises for a switch that fails, which is told in `differences`.

    The reference arm is strict whatever recipe and variables allow: an operation without a deterministic version is
    refused, and float32 products are computed in float32.
    """
    warn_only = recipe.nondeterministic_ops == WARN and arm is Arm.NATIVE
    wanted = (
        flags.seed_flags(SEED)
        | flags.mode_flags(warn_only=warn_only)
        | flags.precision_flags(flags.torch_version())
        | flags.thread_flags(recipe.threads)
        | (flags.strict_flags() if arm is Arm.REFERENCE else {})
    )
    failed = _set_all(wanted)
    in_force = read_back(flags.recorded() | {name: flag.read for name, flag in wanted.items()})
    return Applied.compared({name: flag.asked for name, flag in wanted.items()}, in_force, failed)


def _set_all(wanted: Mapping[str, Flag]) -> dict[str, str]:
    """Set each flag; the failures, by name."""
    failed = {}
    for name, flag in wanted.items():
        try:
            flag.set()
        except (RuntimeError, AttributeError, ValueError) as error:  # what torch's flag setters raise
            failed[name] = f"asked for {flag.asked!r}; setting it failed: {error}"
    return failed
