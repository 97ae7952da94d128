"""Nothing that the installed transformers defines as a generation setting is missing from the table.

The names come from the library itself, in every form in which it defines or reads one, never from our own list.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from transformers import GenerationConfig, PretrainedConfig
from transformers.generation import GenerationMixin, utils

from runner.sampling import SETTINGS

CALL = {"self", "inputs", "input_ids", "kwargs", "generation_config"}  # what is generated from, not how
DOCUMENTED = re.compile(r"^ *(?:> )?(\w+) ?\(`", re.MULTILINE)  # "    name (`type`, *optional*): ..."


def nodes(source: Any) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(textwrap.dedent(inspect.getsource(source))))


def assigned(function: Any) -> set[str]:
    """Names in `self.NAME = ...`."""
    found = (n for n in nodes(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return {n.attr for n in found if isinstance(n.value, ast.Name) and n.value.id == "self"}


def read_from(holder: str, source: Any) -> set[str]:
    """Names in `HOLDER.NAME`, methods of the configuration left out."""
    found = (n for n in nodes(source) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    names = {n.attr for n in found if isinstance(n.value, ast.Name) and n.value.id == holder}
    return {name for name in names if not callable(getattr(GenerationConfig, name, None))}


def taken(function: Any) -> set[str]:
    """Names in `kwargs.pop("NAME")` and `kwargs.get("NAME")`."""
    calls = (n for n in nodes(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.args)
    return {
        str(call.args[0].value)
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in {"pop", "get"}
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "kwargs"
        and isinstance(call.args[0], ast.Constant)
    }


def public(names: set[str]) -> set[str]:
    """Names beginning with an underscore are notes of the library to itself, such as `_eos_token_tensor`."""
    return {name for name in names if not name.startswith("_")}


def of_model_configurations() -> set[str]:
    """Generation settings that a model's config.json may hold: version 4 names them there, version 5 here."""
    for owner, name in (
        (PretrainedConfig, "_get_global_generation_defaults"),
        (GenerationConfig, "_get_default_generation_params"),
    ):
        if hasattr(owner, name):
            return set(getattr(owner, name)())
    return set()


def of_generate() -> set[str]:
    arguments = set(inspect.signature(GenerationMixin.generate).parameters)
    inside = (getattr(GenerationMixin, name, None) for name in ("generate", "_extract_generation_mode_kwargs"))
    return arguments.union(*(taken(function) for function in inside if function is not None)) - CALL


SOURCES = {
    "attributes of an instance": lambda: set(vars(GenerationConfig())),
    "assignments of the constructor": lambda: assigned(GenerationConfig.__init__),
    "arguments of the constructor": lambda: taken(GenerationConfig.__init__),
    "documented": lambda: set(DOCUMENTED.findall(GenerationConfig.__doc__ or "")),
    "arguments of generate": of_generate,
    "read while generating": lambda: public(read_from("generation_config", utils)),
    "read to choose the mode": lambda: read_from("self", GenerationConfig.get_generation_mode),
    "legacy, in a model's config.json": of_model_configurations,
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_setting_that_the_library_defines_is_classified(source: str) -> None:
    names = SOURCES[source]()
    assert len(names) >= 9  # an enumeration that finds nothing proves nothing
    assert sorted(names - set(SETTINGS)) == []


def test_a_new_setting_would_be_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newer(GenerationConfig):
        """As transformers' own, with one more.

        greediness (`float`, *optional*):
            Something new.
        """

        def __init__(self, **kwargs: Any) -> None:
            self.eagerness = kwargs.pop("eagerness", 1.0)
            super().__init__(**kwargs)

        def get_generation_mode(self, assistant_model: Any = None) -> Any:
            return self.keenness

    monkeypatch.setattr(f"{__name__}.GenerationConfig", Newer)
    found = {source: sorted(names() - set(SETTINGS)) for source, names in SOURCES.items()}
    assert {source: names for source, names in found.items() if names} == {
        "attributes of an instance": ["eagerness"],
        "assignments of the constructor": ["eagerness"],
        "arguments of the constructor": ["eagerness"],
        "documented": ["greediness"],
        "read to choose the mode": ["keenness"],
    }


def test_settings_read_from_a_configuration_would_be_found() -> None:
    def loop(generation_config: Any) -> Any:
        generation_config.validate()
        return generation_config.bravery

    assert read_from("generation_config", loop) == {"bravery"}
