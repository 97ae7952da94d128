"""The pinned attention back end really is the one that runs, or the target is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from test_determinism_flags import child
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

from driftpin.errors import CannotMeasureError, ConfigError
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm, Probe
from runner.determinism import attention_context, prove_attention


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def recipe(sdpa: str = "math", attention: str = "sdpa") -> Recipe:
    return Recipe(engine="transformers", model="m", sdpa=sdpa, attention=attention)


def kernels(wanted: Recipe, arm: Arm) -> set[str]:
    """Names of the attention operators that ran."""
    q = torch.ones(1, 2, 8, 16)
    with profile(activities=[ProfilerActivity.CPU]) as seen, attention_context(wanted, arm, Probe.SCORE):
        scaled_dot_product_attention(q, q, q)
    return {event.key for event in seen.key_averages() if "attention" in event.key}


def test_the_pinned_back_end_is_the_one_that_runs() -> None:
    assert "aten::_scaled_dot_product_attention_math" in kernels(recipe("math"), Arm.NATIVE)
    flash = kernels(recipe("flash"), Arm.NATIVE)
    assert any("flash" in name for name in flash)
    assert "aten::_scaled_dot_product_attention_math" not in flash


def test_the_reference_arm_is_always_math() -> None:
    assert "aten::_scaled_dot_product_attention_math" in kernels(recipe("flash"), Arm.REFERENCE)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sdpa", ["math", "flash"])
def test_a_trial_names_the_back_end(sdpa: str, masked: bool) -> None:
    found = prove_attention(recipe(sdpa), Arm.NATIVE, torch.float32, 16, heads=4, kv_heads=2, masked=masked)
    assert found == sdpa
    assert prove_attention(recipe(sdpa), Arm.REFERENCE, torch.float32, 16) == "math"


def test_eager_attention_has_no_back_end_to_pin() -> None:
    assert prove_attention(recipe("efficient", "eager"), Arm.NATIVE, torch.float32, 16) == "eager"


@pytest.mark.parametrize("sdpa", ["efficient", "cudnn"])
def test_a_back_end_that_this_device_lacks_is_refused_with_a_remedy(sdpa: str) -> None:
    with pytest.raises(CannotMeasureError, match="cannot run here") as caught:
        prove_attention(recipe(sdpa), Arm.NATIVE, torch.float32, 16)
    assert 'sdpa = "math"' in (caught.value.remedy or "")


def test_an_unknown_back_end_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="turbo"), attention_context(recipe("turbo"), Arm.NATIVE, Probe.DECODE):
        pass


def test_bfloat16_flash_under_avx2_cannot_run_here() -> None:
    """Measured on machines with AMX: torch's kernel then wants AVX-512 and raises. It is a refusal, never drift."""
    told = child(
        """
from driftpin.errors import CannotMeasureError
try:
    print(json.dumps(prove_attention(recipe(sdpa="flash"), Arm.NATIVE, torch.bfloat16, 64, heads=4)))
except CannotMeasureError as error:
    print(json.dumps([error.message, error.remedy]))
""",
        ATEN_CPU_CAPABILITY="avx2",
    )
    if told == "flash":
        pytest.skip("this CPU runs the bfloat16 kernel under ATEN_CPU_CAPABILITY=avx2")
    assert "cannot run here" in told[0]
    assert "AVX-512" in told[0]
    assert "math" in told[1]


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_the_trial_is_the_call_that_models_make(monkeypatch: pytest.MonkeyPatch, kv_heads: int) -> None:
    """torch 2.6 has no CPU kernel for fewer key heads, and transformers 4.48, which repeats them, asks for none."""
    from transformers.integrations import sdpa_attention

    called = []

    def call(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any) -> None:
        called.append((getattr(module, "num_key_value_groups", 1), tuple(query.shape), tuple(key.shape), mask is None))

    monkeypatch.setattr(sdpa_attention, "sdpa_attention_forward", call)
    prove_attention(recipe("flash"), Arm.NATIVE, torch.float32, 16, heads=4, kv_heads=kv_heads, length=8)
    score, decode = ((4 // kv_heads, (1, 4, n, 16), (1, kv_heads, 8, 16), True) for n in (8, 1))
    assert called == [score, decode]
