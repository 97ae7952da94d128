"""Parameters that two libraries lay out differently cannot be compared by their bits. Pure.

transformers 4 keeps the experts of a block as modules of their own, 5 as one tensor, both from the same files: what
lies on the device then has other names and shapes, and its digests differ without any number being another.
"""

from __future__ import annotations

from dataclasses import replace

from driftpin.environment.environment import Environment, Facts
from driftpin.environment.fact import Unknown

LAYOUT = "parameters.layout"  # of the stack: a digest over names and shapes
DIGESTS, TOTAL, FORMATS = "parameters.", "parameters.total", "parameters.dtypes"
REASON = "the library lays the parameters out otherwise, so their bits cannot be compared; see the weight files"


def comparable(a: Environment, b: Environment) -> tuple[Environment, Environment]:
    """Both as they are, or with their parameters' digests unknown where the layouts are known and differ."""
    layouts = a.stack.get(LAYOUT), b.stack.get(LAYOUT)
    if not all(isinstance(layout, str) for layout in layouts) or layouts[0] == layouts[1]:
        return a, b
    return replace(a, model=_without_digests(a.model)), replace(b, model=_without_digests(b.model))


def _without_digests(model: Facts) -> Facts:
    """One unknown in place of a digest per group: the groups themselves have other names."""
    kept = {name: fact for name, fact in model.items() if not name.startswith(DIGESTS) or name == FORMATS}
    return kept | {TOTAL: Unknown(REASON)}
