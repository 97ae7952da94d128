"""Parameters under two layouts are neither equal nor different."""

from __future__ import annotations

from typing import Any

from driftpin.environment.difference import Change, difference, equalities
from driftpin.environment.environment import Environment, Equality, Section
from driftpin.environment.layout import REASON, comparable

MODEL = {
    "weights.model.safetensors": "w",
    "parameters.model.layers.0": "p",
    "parameters.total": "t",
    "parameters.dtypes": {"bfloat16": 10},
}
STACK = {"library.transformers": "4.57.6", "parameters.layout": "modules"}


def environment(model: Any = (), stack: Any = ()) -> Environment:
    return Environment(model=MODEL | dict(model), stack=STACK | dict(stack), behaviour={}, context={})


OTHER = {"parameters.layout": "one tensor", "library.transformers": "5.24.0"}
LAID_OUT = {"parameters.model.layers.0": "q", "parameters.total": "u"}


def test_another_layout_makes_the_parameters_undetermined_and_nothing_else() -> None:
    old, new = environment(), environment(LAID_OUT, OTHER)
    assert equalities(old, new)[Section.MODEL] is Equality.UNDETERMINED
    found = {entry.name: entry.kind for entry in difference(old, new)}
    assert found == {
        "library.transformers": Change.CHANGED,
        "parameters.layout": Change.CHANGED,
        "parameters.total": Change.UNDETERMINED,
    }
    assert {env.unknowns(Section.MODEL)["parameters.total"] for env in comparable(old, new)} == {REASON}


def test_changed_weight_files_stay_a_changed_model() -> None:
    new = environment({**LAID_OUT, "weights.model.safetensors": "v"}, OTHER)
    assert equalities(environment(), new)[Section.MODEL] is Equality.DIFFERENT


def test_under_one_layout_bits_are_compared() -> None:
    new = environment(LAID_OUT, {"library.transformers": "5.24.0"})
    assert equalities(environment(), new)[Section.MODEL] is Equality.DIFFERENT
    assert comparable(environment(), new) == (environment(), new)


def test_without_a_known_layout_bits_are_compared() -> None:
    """Environments recorded before layouts were."""
    old = environment()
    bare = Environment(model=MODEL | LAID_OUT, stack={"library.transformers": "5.24.0"}, behaviour={}, context={})
    assert equalities(old, bare)[Section.MODEL] is Equality.DIFFERENT
    assert comparable(bare, old) == (bare, old)
