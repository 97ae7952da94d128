"""Quantised weights in the reference arm: their de-quantised values, bit for bit, labelled; or a refusal."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from replaying import kept_process_state
from safetensors.torch import load_file, save_file
from tiny_models import tiny_llama

from driftpin.environment.reference import reference_label
from driftpin.errors import CannotMeasureError
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.probe import Arm, Probe, TraceKey
from driftpin.trace.traceset import Trace
from runner.engines.registry import build
from runner.engines.transformers import TransformersEngine
from runner.loading import load_model

CANARY = Canary(id="short", prompt="2 + 2 =", settings=CanarySettings(max_new_tokens=6))
SUITE = Suite(name="tiny", canaries=(CANARY,))
WEIGHTS = "model.safetensors"
Tensors = dict[str, torch.Tensor]
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32]}


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    with kept_process_state():
        yield


def is_projection(name: str) -> bool:
    return name.endswith("_proj.weight")


def fp8(folder: Path) -> Tensors:
    """Turn the folder's projections into fp8 with a scale per 32 x 32 and return the values they stand for."""
    stored: Tensors = {}
    values: Tensors = {}
    for name, tensor in load_file(folder / WEIGHTS).items():
        if not is_projection(name):
            stored[name] = values[name] = tensor
            continue
        rows, columns = (size // 32 for size in tensor.shape)
        blocks = tensor.reshape(rows, 32, columns, 32)
        scale = blocks.abs().amax(dim=(1, 3), keepdim=True) / 448  # the largest number of float8_e4m3fn
        narrow = (blocks / scale).to(torch.float8_e4m3fn)
        stored[name] = narrow.reshape(tensor.shape)
        stored[f"{name}_scale_inv"] = scale.reshape(rows, columns)
        values[name] = (narrow.float() * scale).reshape(tensor.shape)
    save_file(stored, folder / WEIGHTS, metadata={"format": "pt"})
    told(folder, FP8)
    return values


def told(folder: Path, quantisation: dict[str, Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": quantisation}))


def plain(folder: Path, values: Tensors) -> Path:
    """A model that holds those values and was never quantised."""
    tiny_llama(folder)
    save_file(
        {name: tensor.contiguous() for name, tensor in values.items()}, folder / WEIGHTS, metadata={"format": "pt"}
    )
    return folder


def engine(folder: Path, **options: Any) -> TransformersEngine:
    recipe = Recipe(engine="transformers", model="tiny", path=str(folder), threads=1, dtype="bfloat16", options=options)
    made = build(recipe, Arm.REFERENCE, SUITE)
    assert isinstance(made, TransformersEngine)
    made.load()
    return made


def score(made: TransformersEngine) -> Trace:
    key = TraceKey(canary="short", probe=Probe.SCORE)
    return made.score(key, CANARY, made.render(CANARY, None), [5, 9, 17, 33])


def assert_same_bits(a: Trace, b: Trace) -> None:
    assert a.layers is not None
    assert b.layers is not None
    assert a.head.to_bytes() == b.head.to_bytes()
    assert a.layers.to_bytes() == b.layers.to_bytes()


def test_the_reference_of_fp8_weights_is_their_values_and_says_so(tmp_path: Path) -> None:
    original = score(engine(tiny_llama(tmp_path / "original")))
    folder = tiny_llama(tmp_path / "fp8")
    values = fp8(folder)
    made = engine(folder)
    trace = score(made)
    assert_same_bits(trace, score(engine(plain(tmp_path / "plain", values))))
    assert trace.head.digest.tolist() != original.head.digest.tolist()
    environment = made.environment()
    assert reference_label(environment) == "de-quantised from fp8"
    assert environment.context["reference.way"] == "whole"
    assert environment.model["parameters.dtypes"] == {"float32": sum(t.numel() for t in values.values())}


def test_block_by_block_it_is_refused(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path)
    fp8(folder)
    with pytest.raises(CannotMeasureError, match="de-quantised all at once"):
        engine(folder, reference="block_by_block")


def test_a_method_that_cannot_be_undone_is_refused_with_its_name(tmp_path: Path) -> None:
    told(tiny_llama(tmp_path), {"quant_method": "gptq", "bits": 4, "group_size": 32})
    with pytest.raises(CannotMeasureError, match="quantised by gptq that cannot be de-quantised"):
        engine(tmp_path)


def test_weights_that_stay_narrow_never_run_as_a_reference(tmp_path: Path) -> None:
    def narrow(folder: Path, recipe: Recipe, dtype: torch.dtype) -> Any:
        from runner.loading import read_model

        model, info = read_model(folder, recipe, dtype)
        model.model.norm.to(torch.bfloat16)
        return model, info

    recipe = Recipe(engine="transformers", model="tiny", path=str(tiny_llama(tmp_path)))
    with pytest.raises(CannotMeasureError, match=r"runs in float32, and these are not: model.norm.weight"):
        load_model(recipe, Arm.REFERENCE, narrow)


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None, reason=f"{package} is not among the locked packages"
    )


@needs("compressed_tensors")
@pytest.mark.filterwarnings("ignore")
def test_compressed_tensors_are_de_quantised_while_loading(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path / "packed")
    stored: Tensors = {}
    values: Tensors = {}
    for name, tensor in load_file(folder / WEIGHTS).items():
        if not is_projection(name):
            stored[name] = values[name] = tensor
            continue
        scale = tensor.abs().amax(dim=1, keepdim=True) / 127
        whole = (tensor / scale).round().to(torch.int8)
        stored |= {name: whole, f"{name}_scale": scale}
        values[name] = whole.float() * scale
    save_file(stored, folder / WEIGHTS, metadata={"format": "pt"})
    scheme = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False}
    group = {"targets": ["Linear"], "weights": scheme, "input_activations": None, "output_activations": None}
    quantisation = {"config_groups": {"group_0": group}, "format": "int-quantized", "ignore": ["lm_head"]}
    told(folder, {"quant_method": "compressed-tensors", "quantization_status": "compressed", **quantisation})
    assert_same_bits(score(engine(folder)), score(engine(plain(tmp_path / "plain", values))))


@needs("bitsandbytes")
@pytest.mark.filterwarnings("ignore")
def test_bitsandbytes_is_de_quantised_afterwards(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    tiny_llama(tmp_path / "original")
    narrow = AutoModelForCausalLM.from_pretrained(
        tmp_path / "original", quantization_config=BitsAndBytesConfig(load_in_8bit=True), device_map={"": "cpu"}
    )
    folder = tiny_llama(tmp_path / "int8")
    narrow.save_pretrained(folder)
    stored = load_file(folder / WEIGHTS)
    values = {}
    for name, tensor in stored.items():
        if tensor.dtype is torch.int8:
            values[name] = tensor.float() * stored[name.replace("weight", "SCB")][:, None] * (1 / 127)
        elif tensor.is_floating_point() and not name.endswith("SCB"):
            values[name] = tensor.float()
    made = engine(folder)
    assert reference_label(made.environment()) == "de-quantised from bitsandbytes"
    dequantised = made._loaded.model.state_dict()  # type: ignore[union-attr]
    assert set(dequantised) == set(values)
    for name, expected in values.items():
        torch.testing.assert_close(dequantised[name], expected, rtol=1e-5, atol=1e-7)
