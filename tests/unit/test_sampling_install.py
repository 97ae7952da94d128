"""Both sampling modes on a real, tiny, random Llama: what acts, what does not, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from driftpin.canonical import digest_of
from driftpin.errors import CannotMeasureError, ConfigError
from driftpin.settings.recipe import Recipe, Sampling
from driftpin.suite.canary import CanarySettings
from runner.sampling import generate_kwargs, install, would_have_applied

PROMPT = torch.arange(3, 15)[None]  # [1, 12]
NEW = CanarySettings(max_new_tokens=24)
END, OTHER_END = 1, 2


@pytest.fixture(scope="module")
def llama() -> Any:
    torch.set_num_threads(1)
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        bos_token_id=0,
        eos_token_id=[END, OTHER_END],
    )
    return LlamaForCausalLM(config).eval()


def recipe(sampling: Sampling = Sampling.CLEAN, **generation: Any) -> Recipe:
    return Recipe(engine="transformers", model="tiny", sampling=sampling, generation=generation)


def with_file(model: Any, **values: Any) -> Any:
    model.generation_config = GenerationConfig(bos_token_id=0, eos_token_id=[END, OTHER_END])
    for name, value in values.items():
        setattr(model.generation_config, name, value)
    return model


def outputs(model: Any, wanted: Recipe) -> list[int]:
    install(model, wanted)
    ids = model.generate(PROMPT, attention_mask=torch.ones_like(PROMPT), **generate_kwargs(model, wanted, NEW))
    return ids[0, PROMPT.shape[1] :].tolist()


def greedy_by_hand(model: Any) -> list[int]:
    ids, out = PROMPT, []
    with torch.inference_mode():
        for _ in range(NEW.max_new_tokens):
            token = int(model(ids).logits[0, -1].argmax())
            out.append(token)
            ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
            if token in (END, OTHER_END):
                break
    return out


ACTING: dict[str, Any] = {
    "repetition_penalty": 3.0,
    "no_repeat_ngram_size": 1,
    "encoder_repetition_penalty": 0.1,
    "forced_eos_token_id": END,
    "sequence_bias": [[[40], 50.0]],
}


@pytest.mark.parametrize(("name", "value"), ACTING.items())
def test_an_acting_setting_in_the_file_acts_as_shipped_and_not_under_clean(llama: Any, name: str, value: Any) -> None:
    plain = greedy_by_hand(llama)
    assert outputs(with_file(llama, **{name: value}), recipe(Sampling.AS_SHIPPED)) != plain
    assert outputs(with_file(llama, **{name: value}), recipe()) == plain


@pytest.mark.parametrize("name", ["suppress_tokens", "begin_suppress_tokens", "bad_words_ids"])
def test_forbidding_the_first_token_acts_as_shipped_and_not_under_clean(llama: Any, name: str) -> None:
    plain = greedy_by_hand(llama)
    value = [[plain[0]]] if name == "bad_words_ids" else [plain[0]]
    assert outputs(with_file(llama, **{name: value}), recipe(Sampling.AS_SHIPPED))[0] != plain[0]
    assert outputs(with_file(llama, **{name: value}), recipe()) == plain


@pytest.mark.parametrize(("name", "least"), [("min_new_tokens", 24), ("min_length", 36)])
def test_a_minimum_length_forbids_the_end_only_as_shipped(llama: Any, name: str, least: int) -> None:
    plain = greedy_by_hand(llama)
    file = {"eos_token_id": [plain[0]], name: least}
    assert outputs(with_file(llama, **file), recipe()) == plain[:1]
    assert len(outputs(with_file(llama, **file), recipe(Sampling.AS_SHIPPED))) == NEW.max_new_tokens


def test_sampling_settings_are_inert_under_both_modes(llama: Any) -> None:
    plain = greedy_by_hand(llama)
    file = {"temperature": 0.3, "top_k": 5, "top_p": 0.5, "min_p": 0.2, "typical_p": 0.4}
    for mode in Sampling:
        assert outputs(with_file(llama, **file), recipe(mode)) == plain
        report = install(with_file(llama, **file), recipe(mode))
        assert report.file_inert == file
        assert report.file_acts == report.in_force == {}


def test_a_sampling_file_is_refused_as_shipped_and_cleaned_under_clean(llama: Any) -> None:
    file = {"do_sample": True, "temperature": 5.0, "top_k": 50}
    with pytest.raises(CannotMeasureError, match="do_sample") as caught:
        install(with_file(llama, **file), recipe(Sampling.AS_SHIPPED))
    assert "do_sample = false" in (caught.value.remedy or "")
    assert 'sampling = "clean"' in (caught.value.remedy or "")
    plain = greedy_by_hand(llama)
    assert outputs(with_file(llama, **file), recipe()) == plain
    assert outputs(with_file(llama, **file), recipe(Sampling.AS_SHIPPED, do_sample=False)) == plain
    assert install(with_file(llama, **file), recipe()).file_acts == {"do_sample": True}


def test_clean_holds_even_for_a_call_that_forgets_the_arguments(llama: Any) -> None:
    """The measured trap: a configuration with unset fields inherits them from the model."""
    install(with_file(llama, do_sample=True, temperature=5.0, repetition_penalty=3.0), recipe())
    ids = llama.generate(PROMPT, generation_config=GenerationConfig(max_new_tokens=NEW.max_new_tokens))
    assert ids[0, PROMPT.shape[1] :].tolist() == greedy_by_hand(llama)


def test_one_asked_for_by_name_acts_under_clean_and_overrides_the_file(llama: Any) -> None:
    shipped = outputs(with_file(llama, repetition_penalty=3.0), recipe(Sampling.AS_SHIPPED))
    assert outputs(with_file(llama), recipe(repetition_penalty=3.0)) == shipped != greedy_by_hand(llama)
    asked = recipe(Sampling.AS_SHIPPED, repetition_penalty=1.0)
    assert outputs(with_file(llama, repetition_penalty=3.0), asked) == greedy_by_hand(llama)
    report = install(with_file(llama, repetition_penalty=1.1), recipe(no_repeat_ngram_size=2))
    assert report.in_force == report.asked == {"no_repeat_ngram_size": 2}
    assert report.file_acts == {"repetition_penalty": 1.1}


def test_the_end_stays_the_files_and_padding_is_filled_in(llama: Any) -> None:
    report = install(with_file(llama), recipe())
    assert report.end_ids == (END, OTHER_END)
    assert llama.generation_config.pad_token_id == END
    assert install(with_file(llama, eos_token_id=None), recipe()).end_ids == ()


def test_the_canary_alone_limits_the_output(llama: Any) -> None:
    file = {"max_length": 13, "max_new_tokens": 1, "cache_implementation": "static", "use_cache": False}
    report = install(with_file(llama, **file), recipe(Sampling.AS_SHIPPED))
    assert report.file_overridden == file
    assert outputs(with_file(llama, **file), recipe(Sampling.AS_SHIPPED)) == greedy_by_hand(llama)


def test_would_have_applied_counts_neither_neutral_nor_inert_values() -> None:
    file = GenerationConfig(
        repetition_penalty=1.1, no_repeat_ngram_size=0, num_beams=1, do_sample=True, temperature=0.6, max_length=99
    )
    assert would_have_applied(file) == {"repetition_penalty": 1.1, "do_sample": True}
    assert would_have_applied(GenerationConfig()) == {}


def test_custom_entries_of_the_file_are_reported_and_stay_only_as_shipped(llama: Any) -> None:
    assert install(with_file(llama, chat_format="x"), recipe()).file_unclassified == {"chat_format": "x"}
    assert not hasattr(llama.generation_config, "chat_format")
    install(with_file(llama, chat_format="x"), recipe(Sampling.AS_SHIPPED))
    assert llama.generation_config.chat_format == "x"


def contradictory() -> list[tuple[dict[str, Any], str]]:
    """Settings that the installed version itself refuses together; older ones take them."""
    together = {"suppress_tokens": [5], "forced_eos_token_id": 5}
    try:
        GenerationConfig(**together)
    except ValueError:
        return [(together, "transformers refuses")]
    return []


@pytest.mark.parametrize(
    ("generation", "says"),
    [
        ({"repetition_penality": 1.1}, "repetition_penalty"),
        ({"zzz": 1}, "GenerationConfig"),
        ({"do_sample": True}, "at random"),
        ({"num_beams": 4}, "beams"),
        ({"max_time": 2.0}, "clock"),
        ({"custom_generate": "someone/loop"}, "custom_generate"),
        ({"prompt_lookup_num_tokens": 3}, "assisted"),
        ({"max_new_tokens": 3}, "set by driftpin"),
        ({"eos_token_id": 3}, "set by driftpin"),
        ({"repetition_penalty": "high"}, "a number"),
        ({"renormalize_logits": 3}, "true or false"),
        ({"forced_decoder_ids": [[1, 2]]}, "stops every call"),
        ({"diversity_penalty": 1.0}, "groups of beams"),
        *contradictory(),
    ],
)
def test_what_cannot_be_asked_for_is_a_configuration_error(llama: Any, generation: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        install(with_file(llama), recipe(**generation))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "file", [{"num_beams": 3}, {"guidance_scale": 1.5}, {"stop_strings": ["x"]}, {"max_time": 1.0}]
)
def test_a_file_that_is_not_greedy_is_refused_as_shipped_only(llama: Any, file: dict[str, Any]) -> None:
    with pytest.raises(CannotMeasureError, match=next(iter(file))):
        install(with_file(llama, **file), recipe(Sampling.AS_SHIPPED))
    assert install(with_file(llama, **file), recipe()).file_acts == file
    assert outputs(with_file(llama, **file), recipe()) == greedy_by_hand(llama)


def test_facts_can_be_hashed(llama: Any) -> None:
    facts = install(with_file(llama, repetition_penalty=1.1, sequence_bias={(4, 5): -1.5}), recipe()).facts()
    assert facts["sampling.mode"] == "clean"
    assert facts["sampling.file.repetition_penalty"] == "1.1"
    assert facts["sampling.file.sequence_bias"] == {"(4, 5)": "-1.5"}
    assert len(digest_of(facts)) == 64
