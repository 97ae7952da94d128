"""The table by itself: reasons, effects of well-known settings, and which values count as unset.

That it is complete is tested in test_sampling_defined.py, that it is right in test_sampling_behaviour.py.
"""

from __future__ import annotations

import pytest
from transformers import GenerationConfig

from runner.sampling import SETTINGS, Effect
from runner.sampling.effect import KEPT
from runner.sampling.report import sort_file


def test_every_setting_says_why() -> None:
    assert all(setting.why and setting.name == name for name, setting in SETTINGS.items())


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("repetition_penalty", Effect.ACTS),
        ("min_new_tokens", Effect.ACTS),
        ("temperature", Effect.INERT),
        ("top_k", Effect.INERT),
        ("do_sample", Effect.REFUSED),
        ("max_time", Effect.REFUSED),
        ("max_new_tokens", Effect.OURS),
    ],
)
def test_well_known_settings_have_their_effect(name: str, effect: Effect) -> None:
    assert SETTINGS[name].effect is effect


def test_library_defaults_count_as_unset() -> None:
    """4.57's GenerationConfig() has values where 5.24's has None; neither may be reported as found in a file."""
    empty = GenerationConfig()
    in_use = getattr(GenerationConfig, "_get_default_generation_params", dict)()  # version 5 fills these in per call
    named = {name: value for name, value in {**empty.to_dict(), **in_use}.items() if SETTINGS[name].neutral is not KEPT}
    assert len(named) >= 50
    assert {name: value for name, value in named.items() if not SETTINGS[name].is_neutral(value)} == {}
    assert [part for part in sort_file(empty).values() if part] == []


def test_a_setting_that_this_version_lacks_is_not_said_to_act() -> None:
    """The table knows more than any one version; `assistant_model` stands for one that is gone."""
    file = GenerationConfig()
    file.repetition_penalty = 1.1
    file.assistant_model = "elsewhere"  # an argument of generate, in no version a setting of the file
    assert sort_file(file)["file_acts"] == {"repetition_penalty": 1.1}
    assert sort_file(file)["file_unclassified"] == {"assistant_model": "elsewhere"}
