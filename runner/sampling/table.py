"""Every generation setting of transformers 4.48 to 5.24, classified. A test fails when the installed one has another.

Sources, read in 4.48.3, 4.51.3, 4.57.6, 5.0.0, 5.10.1 and 5.24.0: `GenerationConfig` (attributes, docstring), the
arguments of `generate`, `_get_logits_processor`, `_get_stopping_criteria`, `get_generation_mode`, and the generation
parameters that a model's config.json may hold. Neutral values are ours: 4.57's defaults are values, 5.24's are None, so
defaults cannot be compared; a further value after the reason is some version's default, and counts as unset in all.
"""

from __future__ import annotations

from types import MappingProxyType

from runner.sampling.effect import KEPT, Effect, rows

ACTS = {
    "repetition_penalty": (1.0, "scales the logits of tokens seen before"),
    "encoder_repetition_penalty": (1.0, "scales the logits of prompt tokens, also in decoder-only models"),
    "no_repeat_ngram_size": (0, "forbids tokens that would repeat an n-gram"),
    "encoder_no_repeat_ngram_size": (0, "forbids n-grams of the prompt, also in decoder-only models"),
    "bad_words_ids": (None, "forbids token sequences"),
    "sequence_bias": (None, "adds a bias to the logits of token sequences"),
    "min_length": (0, "forbids the end token until prompt and output have this length"),
    "min_new_tokens": (None, "forbids the end token until the output has this length", 0),
    "forced_bos_token_id": (None, "forces the token after a prompt of one token"),
    "forced_eos_token_id": (None, "forces the last token at the length limit"),
    "remove_invalid_values": (False, "replaces NaN and infinite logits before the choice"),
    "exponential_decay_length_penalty": (None, "raises the end token's logit from a position on"),
    "suppress_tokens": (None, "forbids tokens"),
    "begin_suppress_tokens": (None, "forbids tokens at the first position"),
    "renormalize_logits": (False, "takes a log-softmax after the processors; its rounding can make a tie"),
}

SAMPLING = "read only when do_sample is true"
BEAMS = "read only with more than one beam"
ASSISTANT = "read only with an assistant or prompt lookup, which are refused"
INERT = {
    "temperature": (1.0, SAMPLING),
    "top_k": (None, SAMPLING, 50),  # None and not 0: validate() complains about 0 in a greedy call
    "top_p": (1.0, SAMPLING),
    "min_p": (None, SAMPLING),
    "top_h": (None, SAMPLING),
    "typical_p": (1.0, SAMPLING),
    "epsilon_cutoff": (0.0, SAMPLING),
    "eta_cutoff": (0.0, SAMPLING),
    "early_stopping": (False, BEAMS),
    "length_penalty": (1.0, BEAMS),
    "low_memory": (None, "read only in beam and contrastive search"),
    "num_assistant_tokens": (None, ASSISTANT, 20),
    "num_assistant_tokens_schedule": (None, ASSISTANT, "constant"),
    "assistant_confidence_threshold": (None, ASSISTANT, 0.4),
    "assistant_lookbehind": (None, ASSISTANT, 10),
    "target_lookbehind": (None, ASSISTANT, 10),
    "assistant_ensemble_weight": (None, ASSISTANT),
    "speculation_type": (None, ASSISTANT),
    "max_matching_ngram_size": (None, ASSISTANT),
    "force_bos_token_to_be_generated": (None, "becomes forced_bos_token_id when the model is loaded", False),
}

ARGUMENT = "an argument of generate that runs code of its own inside the loop"
REFUSED = {
    "do_sample": (False, "draws tokens at random"),
    "num_beams": (1, "searches with beams, which is not greedy"),
    "num_beam_groups": (1, "searches with groups of beams, which is not greedy"),
    "num_return_sequences": (1, "greedy decoding has one sequence"),
    "diversity_penalty": (0.0, "belongs to groups of beams; some versions stop a greedy call over it"),
    "forced_decoder_ids": (None, "stops every call of transformers 4 that has it"),
    "penalty_alpha": (0.0, "switches to contrastive search"),
    "dola_layers": (None, "decodes by contrasting layers"),
    "constraints": (None, "switches to constrained beam search"),
    "force_words_ids": (None, "switches to constrained beam search"),
    "guidance_scale": (1.0, "runs the model twice per token and mixes both logits"),
    "watermarking_config": (None, "biases tokens by a keyed hash"),
    "max_time": (None, "ends the output by the clock, so that a slow machine looks like drift"),
    "stop_strings": (None, "ends the output by decoded text; the end must be an end token or the limit"),
    "token_healing": (False, "rewrites the end of the prompt"),
    "prefill_chunk_size": (None, "splits the prefill, which must be one call to be recorded"),
    "use_mtp": (False, "drafts several tokens per step"),
    "is_assistant": (False, "stops by confidence, as a draft model does"),
    "prompt_lookup_num_tokens": (None, "drafts tokens from the prompt (assisted decoding)"),
    "assistant_early_exit": (None, "drafts tokens with the model's lower layers (assisted decoding)"),
    "assistant_model": (None, "drafts tokens with another model (assisted decoding)"),
    "assistant_tokenizer": (None, "belongs to an assistant, which is refused"),
    "generation_kwargs": (None, "passes unchecked settings on"),
    "custom_generate": (None, "replaces the decoding loop by code from elsewhere"),
    "trust_remote_code": (None, "lets custom_generate run, which is refused", False),
    "logits_processor": (None, ARGUMENT),
    "stopping_criteria": (None, ARGUMENT),
    "prefix_allowed_tokens_fn": (None, ARGUMENT),
    "negative_prompt_ids": (None, "belongs to guidance, which is refused"),
    "negative_prompt_attention_mask": (None, "belongs to guidance, which is refused"),
    "use_model_defaults": (None, "mixes the model's own values in"),
}

LENGTH = "the canary's max_new_tokens alone limits the output"
CACHE = "the recipe's cache setting decides"
OUTPUT = "decided by the recorder"
TOKEN = "kept from the model's file: it says where an output begins, ends or is padded"
COMPILE = "nothing is compiled"
NOT_ACTING = "says where the values come from; does not act"
OURS = {
    "max_length": (None, LENGTH, 20),
    "max_new_tokens": (None, LENGTH),
    "use_cache": (True, CACHE),
    "cache_implementation": (None, CACHE),
    "cache_config": (None, CACHE),
    "max_cache_len": (None, CACHE),
    "return_legacy_cache": (None, CACHE),
    "output_attentions": (False, OUTPUT),
    "output_hidden_states": (False, OUTPUT),
    "output_scores": (False, OUTPUT),
    "output_logits": (False, OUTPUT),
    "return_dict_in_generate": (False, OUTPUT),
    "streamer": (None, OUTPUT),
    "synced_gpus": (None, OUTPUT),
    "tokenizer": (None, "belongs to stop_strings and token_healing, which are refused"),
    "pad_token_id": (KEPT, TOKEN),
    "bos_token_id": (KEPT, TOKEN),
    "eos_token_id": (KEPT, TOKEN),
    "decoder_start_token_id": (KEPT, TOKEN),
    "compile_config": (None, COMPILE),
    "disable_compile": (True, COMPILE, False),
    "continuous_batching_config": (None, "a server's setting; canaries run in their declared shape"),
    "transformers_version": (KEPT, NOT_ACTING),
    "_from_model_config": (False, NOT_ACTING, True),
    "_commit_hash": (KEPT, NOT_ACTING),
}

SETTINGS = MappingProxyType(
    {
        setting.name: setting
        for effect, entries in (
            (Effect.ACTS, ACTS),
            (Effect.INERT, INERT),
            (Effect.REFUSED, REFUSED),
            (Effect.OURS, OURS),
        )
        for setting in rows(effect, entries)
    }
)
