"""The table knows every setting of the installed transformers, and of the older ones that are supported."""

from __future__ import annotations

import pytest
from transformers import GenerationConfig

from runner.sampling import SETTINGS, Effect, known_names

OF_4_48 = {
    "constraints", "diversity_penalty", "dola_layers", "encoder_no_repeat_ngram_size", "force_words_ids",
    "generation_kwargs", "guidance_scale", "low_memory", "max_matching_ngram_size", "num_beam_groups",
    "penalty_alpha", "prompt_lookup_num_tokens", "return_legacy_cache", "token_healing", "watermarking_config",
}  # fmt: skip


def test_every_setting_of_the_installed_version_is_classified() -> None:
    names = set(GenerationConfig().to_dict()) | known_names()
    assert len(names) > 60
    assert names - set(SETTINGS) == set()


def test_settings_of_older_versions_are_classified() -> None:
    assert set() == OF_4_48 - set(SETTINGS)


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


def test_library_defaults_of_any_version_are_neutral() -> None:
    """4.57's GenerationConfig() has values where 5.24's has None; neither may be reported as acting."""
    filled = GenerationConfig._get_default_generation_params() | {"min_new_tokens": 0, "guidance_scale": 1.0}
    checked = [SETTINGS[name] for name in filled if SETTINGS[name].effect in (Effect.ACTS, Effect.REFUSED)]
    assert len(checked) >= 10
    assert [setting.name for setting in checked if not setting.is_neutral(filled[setting.name])] == []
