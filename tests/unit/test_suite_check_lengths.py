"""Which lengths a configuration makes interesting, and on which side of them canaries lie."""

from __future__ import annotations

from typing import Any

import pytest

from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.workflow.suite_check_lengths import (
    Length,
    Side,
    crossings,
    length_findings,
    remembered,
    side_of,
    static_cache,
    thresholds,
)

TILES = [("prefill tile", 128), ("prefill tile", 256)]
MIXED = ["sliding_attention", "sliding_attention", "full_attention"]


def length(prompt: int, output: int = 1, canary: str = "a") -> Length:
    return Length(canary=canary, prompt=prompt, fed=prompt + output - 1)


def found(config: dict[str, Any]) -> list[tuple[str, int]]:
    return [(t.name, t.at) for t in thresholds(config) if (t.name, t.at) not in TILES]


def said(config: dict[str, Any], *lengths: Length) -> list[Finding]:
    return list(length_findings(crossings(thresholds(config), lengths), lengths, config))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 8192, "rope_parameters": {"rope_type": "default"}}, []),
        ({"sliding_window": 512, "layer_types": MIXED}, [("sliding_window", 512)]),
        ({"sliding_window": 512, "layer_types": ["full_attention"] * 3}, []),
        ({"sliding_window": 4096}, [("sliding_window", 4096)]),
        ({"sliding_window": None}, []),
        ({"sliding_window": True}, []),
        (
            {"attention_chunk_size": 8192, "layer_types": ["chunked_attention", "full_attention"]},
            [("attention_chunk_size", 8192)],
        ),
        ({"floor_scale": 8192, "attn_temperature_tuning": True}, [("floor_scale", 8192)]),
        ({"floor_scale": 8192, "attn_temperature_tuning": False}, []),
        ({"window_size": 256, "attention_layers": ["global", "local"]}, [("window_size", 256)]),
        (  # transformers 5
            {"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 4096}},
            [("rope longrope", 4096)],
        ),
        (  # transformers 4
            {"rope_scaling": {"type": "longrope"}, "original_max_position_embeddings": 4096},
            [("rope longrope", 4096)],
        ),
        (
            {"rope_parameters": {"rope_type": "yarn", "original_max_position_embeddings": 4096}},
            [("rope yarn", 4096)],
        ),
        (  # the library switches at the model's own length
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}, "max_position_embeddings": 2048},
            [("rope dynamic", 2048)],
        ),
        (
            {
                "rope_parameters": {
                    "sliding_attention": {"rope_type": "default"},
                    "full_attention": {"rope_type": "llama3", "original_max_position_embeddings": 8192},
                    "none": None,
                }
            },
            [("rope llama3", 8192)],
        ),
        (
            {"rope_parameters": {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 16384}},
            [("llama_4_scaling_beta", 16384)],
        ),
        ({"sliding_window": 4096, "max_position_embeddings": 2048}, []),  # nobody can get there
    ],
)
def test_lengths_of_a_configuration(config: dict[str, Any], expected: list[tuple[str, int]]) -> None:
    assert found(config) == expected


def test_a_mix_of_layers_is_told() -> None:
    [window] = [t for t in thresholds({"sliding_window": 512, "layer_types": MIXED}) if t.at == 512]
    assert window.why.startswith("2 of 3 layers can no longer see")


def test_a_model_without_room_has_no_tiles() -> None:
    assert [t.at for t in thresholds({"max_position_embeddings": 200})] == [128]


@pytest.mark.parametrize(
    ("prompt", "output", "side"),
    [
        (10, 5, Side.BELOW),
        (96, 5, Side.BELOW),  # the last output token is never fed: 100 in all
        (96, 6, Side.ACROSS),
        (100, 2, Side.ACROSS),
        (101, 1, Side.BEYOND),
    ],
)
def test_the_side_of_a_canary(prompt: int, output: int, side: Side) -> None:
    [window] = [t for t in thresholds({"sliding_window": 100}) if t.at == 100]
    assert side_of(length(prompt, output), window) is side


def test_only_prompts_cross_a_tile() -> None:
    [tile] = [t for t in thresholds({}) if t.at == 128]
    assert side_of(length(100, 100), tile) is Side.BELOW
    assert side_of(length(129, 1), tile) is Side.BEYOND


def test_what_is_not_crossed_comes_with_a_length_to_add() -> None:
    [finding] = [f for f in said({"sliding_window": 1600}, length(300, 20), length(20)) if f.level is Level.WARNING]
    assert finding.kind is FindingKind.LENGTH_NOT_CROSSED
    assert "sliding_window = 1600 tokens (the longest has 319)" in finding.sentence
    assert "about 1700 tokens, some 6,800 characters" in finding.remedy


def test_a_suite_that_lies_beyond_wants_a_short_canary() -> None:
    [finding] = [f for f in said({"sliding_window": 160}, length(300), length(200)) if f.level is Level.WARNING]
    assert "Every canary goes beyond sliding_window = 160 tokens (the shortest has 200)" in finding.sentence
    assert "at most 150 tokens" in finding.remedy


def test_a_crossed_length_is_no_finding() -> None:
    assert said({"sliding_window": 200}, length(300), length(20)) == []


def test_a_very_long_one_is_a_note_only() -> None:
    [finding] = said({"sliding_window": 131_072}, length(300), length(20))
    assert finding.level is Level.NOTE
    assert "costly" in finding.remedy


def test_a_canary_beyond_the_models_positions() -> None:
    both = (length(200, 60, "big"), length(150, 107, "more"), length(150, 106, "fits"), length(20, 1, "small"))
    config = {"max_position_embeddings": 255}
    [finding] = [f for f in said(config, *both) if f.kind is FindingKind.TOO_LONG]
    assert finding.canaries == ("big", "more")
    assert "the 255 positions" in finding.sentence
    dynamic = config | {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}
    assert [f for f in said(dynamic, *both) if f.kind is FindingKind.TOO_LONG] == []


def test_no_canary_that_ran_is_no_finding() -> None:
    assert said({"sliding_window": 512}) == []


def test_the_longest_canary_decides_the_static_cache() -> None:
    lengths = (length(100, 5, "long"), length(90, 30, "limit"))
    finding = static_cache(lengths, {"long": 10, "limit": 40}, padding=16, step=64)
    assert finding is not None
    assert finding.canaries == ("limit",)
    assert "holds 192 tokens" in finding.sentence  # 130 + 16 = 146, rounded up
    assert "more than 176 tokens" in finding.remedy
    assert static_cache((), {}, padding=16, step=64) is None


@pytest.mark.parametrize(("kind", "told"), [("dynamic", True), ("longrope", True), ("yarn", False)])
def test_what_a_model_keeps_between_prompts(kind: str, told: bool) -> None:
    assert (remembered({"rope_parameters": {"rope_type": kind}}) is not None) is told
    assert remembered({}) is None
