"""The classes of the table, held against what the installed transformers does with a greedy call on a tiny model.

Settings are given to `generate` directly: driftpin has no part in it but the names and their classes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation import GenerationMode

from runner.sampling import SETTINGS, Effect, known_names

PROMPT = torch.arange(3, 15)[None]  # [1, 12]
NEW, END = 16, 1
GREEDY = {"do_sample": False, "num_beams": 1, "pad_token_id": 0, "eos_token_id": END}
KNOWN = known_names()


def known(effect: Effect) -> list[str]:
    return [name for name, setting in SETTINGS.items() if setting.effect is effect and name in KNOWN]


@pytest.fixture(scope="module")
def llama() -> Any:
    torch.set_num_threads(1)
    torch.manual_seed(11)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        initializer_range=0.15,
        bos_token_id=0,
        eos_token_id=END,
    )
    model = LlamaForCausalLM(config).eval()
    model.generation_config = GenerationConfig(bos_token_id=0, eos_token_id=END, pad_token_id=0)
    return model


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The library says that a sampling setting has no effect; that it has none is what is tested here."""
    logger = logging.getLogger("transformers")
    before = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logger.setLevel(before)


def run(model: Any, prompt: torch.Tensor = PROMPT, **settings: Any) -> tuple[list[int], torch.Tensor]:
    """Emitted tokens and processed scores [steps, vocab] of a greedy call with these settings."""
    made = model.generate(
        input_ids=prompt,
        attention_mask=torch.ones_like(prompt),
        output_scores=True,
        return_dict_in_generate=True,
        **({"max_new_tokens": NEW} | GREEDY | settings),
    )
    return made.sequences[0, prompt.shape[1] :].tolist(), torch.cat(made.scores)


def same(a: tuple[list[int], torch.Tensor], b: tuple[list[int], torch.Tensor]) -> bool:
    return a[0] == b[0] and torch.equal(a[1].view(torch.int32), b[1].view(torch.int32))


INERT: dict[str, Any] = {
    "temperature": 0.3,
    "top_k": 5,
    "top_p": 0.5,
    "min_p": 0.2,
    "top_h": 0.4,
    "typical_p": 0.4,
    "epsilon_cutoff": 0.1,
    "eta_cutoff": 0.1,
    "early_stopping": True,
    "length_penalty": 3.0,
    "low_memory": True,
    "num_assistant_tokens": 3,
    "num_assistant_tokens_schedule": "heuristic",
    "assistant_confidence_threshold": 0.9,
    "assistant_lookbehind": 3,
    "target_lookbehind": 3,
    "assistant_ensemble_weight": 0.5,
    "speculation_type": "dflash",
    "max_matching_ngram_size": 1,
}


@pytest.mark.parametrize("name", known(Effect.INERT))
def test_an_inert_setting_changes_no_token_and_no_score(llama: Any, name: str) -> None:
    assert not SETTINGS[name].is_neutral(INERT[name])
    assert same(run(llama, **{name: INERT[name]}), run(llama))


def test_all_inert_settings_together_change_nothing(llama: Any) -> None:
    assert same(run(llama, **{name: INERT[name] for name in known(Effect.INERT)}), run(llama))


ACTING: dict[str, dict[str, Any]] = {
    "repetition_penalty": {"repetition_penalty": 3.0},
    "encoder_repetition_penalty": {"encoder_repetition_penalty": 0.1},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 1},
    "encoder_no_repeat_ngram_size": {"encoder_no_repeat_ngram_size": 1},
    "sequence_bias": {"sequence_bias": [[[40], 50.0]]},
    "forced_eos_token_id": {"forced_eos_token_id": END},
    "exponential_decay_length_penalty": {"exponential_decay_length_penalty": (2, 50.0)},
    "renormalize_logits": {"renormalize_logits": True},
}
FORBIDDING = ("suppress_tokens", "begin_suppress_tokens", "bad_words_ids")
LEAST = {"min_new_tokens": 9, "min_length": PROMPT.shape[1] + 9}
APART = ("forced_bos_token_id", "remove_invalid_values")


def test_every_acting_setting_has_its_test() -> None:
    assert sorted(known(Effect.ACTS)) == sorted([*ACTING, *FORBIDDING, *LEAST, *APART])


@pytest.mark.parametrize("name", ACTING)
def test_an_acting_setting_changes_the_scores_of_a_greedy_call(llama: Any, name: str) -> None:
    assert not same(run(llama, **ACTING[name]), run(llama))


@pytest.mark.parametrize("name", FORBIDDING)
def test_a_forbidden_token_is_not_chosen(llama: Any, name: str) -> None:
    first = run(llama)[0][0]
    assert run(llama, **{name: [[first]] if name == "bad_words_ids" else [first]})[0][0] != first


@pytest.mark.parametrize("name", LEAST)
def test_a_minimum_forbids_the_end_until_then(llama: Any, name: str) -> None:
    first = run(llama)[0][0]
    assert len(run(llama, eos_token_id=first)[0]) == 1
    assert len(run(llama, eos_token_id=first, **{name: LEAST[name]})[0]) >= 9


def test_the_forced_first_token_follows_a_prompt_of_one(llama: Any) -> None:
    one = torch.tensor([[7]])
    forced = (run(llama, one)[0][0] + 1) % 64
    assert run(llama, one, forced_bos_token_id=forced)[0][0] == forced


def test_invalid_values_are_replaced(llama: Any) -> None:
    hook = llama.lm_head.register_forward_hook(lambda m, i, out: out.index_fill(-1, torch.tensor([9]), torch.nan))
    try:
        assert run(llama)[0] == [9] * NEW  # the arg-max takes a NaN
        assert 9 not in run(llama, remove_invalid_values=True)[0][:1]
    finally:
        hook.remove()


def test_neutral_values_are_what_the_library_does_without_them(llama: Any) -> None:
    """Also where its defaults are others: 4.57 has values where 5.24 has None."""
    names = [*known(Effect.ACTS), *known(Effect.INERT)]
    assert same(run(llama, **{name: SETTINGS[name].neutral for name in names}), run(llama))
    also = {name: value for name in names for value in SETTINGS[name].also}
    assert same(run(llama, **also), run(llama))


MODES: dict[str, dict[str, Any]] = {
    "do_sample": {"do_sample": True},
    "num_beams": {"num_beams": 2},
    "num_beam_groups": {"num_beams": 2, "num_beam_groups": 2, "diversity_penalty": 1.0},
    "penalty_alpha": {"penalty_alpha": 0.6, "top_k": 4},
    "dola_layers": {"dola_layers": "high"},
    "force_words_ids": {"force_words_ids": [[5]], "num_beams": 2},
    "prompt_lookup_num_tokens": {"prompt_lookup_num_tokens": 2},
    "assistant_early_exit": {"assistant_early_exit": 1},
    "use_mtp": {"use_mtp": True},
}


@pytest.mark.parametrize("name", [name for name in MODES if name in KNOWN])
def test_settings_that_are_refused_for_their_mode_leave_greedy_search(name: str) -> None:
    assert SETTINGS[name].effect is Effect.REFUSED
    assert GenerationConfig(do_sample=False).get_generation_mode() is GenerationMode.GREEDY_SEARCH
    settings = {"do_sample": False, "num_beams": 1} | MODES[name]
    assert GenerationConfig(**settings).get_generation_mode() is not GenerationMode.GREEDY_SEARCH
    neutral = {"do_sample": False, "num_beams": 1} | {name: SETTINGS[name].neutral}
    assert GenerationConfig(**neutral).get_generation_mode() is GenerationMode.GREEDY_SEARCH
