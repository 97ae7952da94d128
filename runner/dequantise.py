"""Quantised weights as the float32 numbers that they stand for, through transformers' own de-quantisation.

Some methods de-quantise while they load (`dequantize` or `run_compressed` in their configuration), others afterwards
(`model.dequantize()`); most cannot. Knows a model folder; nothing of arms or memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.quantizers.auto import AutoQuantizationConfig

from driftpin.errors import CannotMeasureError, ModelError
from driftpin.settings.recipe import Recipe
from runner.loading import LOAD_ERRORS, first_line, read_model
from runner.model_folder import CONFIG, read_json
from runner.skeleton import empty_model

KEY = "quantization_config"
WHILE_LOADING = {"dequantize": True, "run_compressed": False}  # what asks for it, newest version first


def method_of(folder: Path) -> str | None:
    """What the folder's weights are quantised by, "fp8" for example; None where they are not."""
    told = read_json(folder / CONFIG).get(KEY)
    if told is None:
        return None
    if not isinstance(told, Mapping):
        raise ModelError(f"{folder / CONFIG}: {KEY} is no table.")
    return str(told.get("quant_method") or "bitsandbytes")  # whose older files do not say


def label(method: str) -> str:
    """The words beside numbers that were computed with de-quantised weights."""
    return f"de-quantised from {method}"


def read_dequantised(folder: Path, recipe: Recipe, dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    """As `runner.loading.read_model`, without any quantised weight; `CannotMeasureError` where that is impossible."""
    method = method_of(folder) or ""
    try:
        model, info = read_model(folder, recipe, dtype, **_asked(folder, recipe))
        if getattr(model, "is_quantized", False) or getattr(model, "hf_quantizer", None) is not None:
            model = _afterwards(model, dtype)
    except ModelError as error:
        raise _impossible(folder, method, error.message) from error
    except (*LOAD_ERRORS, NotImplementedError) as error:
        raise _impossible(folder, method, first_line(error)) from error
    model = model.to(dtype)
    _refuse_remains(model, folder, recipe, method)
    return model, info


def _asked(folder: Path, recipe: Recipe) -> dict[str, Any]:
    """A configuration that asks for it, for methods that can do it while loading."""
    config: Any = transformers.AutoConfig.from_pretrained(
        folder, local_files_only=True, trust_remote_code=recipe.trust_remote_code
    )
    told = dict(config.quantization_config)
    known = AutoQuantizationConfig.from_dict(dict(told))
    word = next((word for word in WHILE_LOADING if hasattr(known, word)), None)
    if word is None:
        return {}
    config.quantization_config = {**told, word: WHILE_LOADING[word]}
    return {"config": config}


def _afterwards(model: Any, dtype: torch.dtype) -> Any:
    takes = inspect.signature(model.dequantize).parameters
    return model.dequantize(**({"dtype": dtype} if "dtype" in takes else {}))


def _refuse_remains(model: Any, folder: Path, recipe: Recipe, method: str) -> None:
    """What came out has to be the model as it would be without quantisation, tensor by tensor."""
    plain = {name: tensor.shape for name, tensor in empty_model(folder, recipe).state_dict().items()}
    made = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if wrong := sorted(name for name in plain.keys() | made.keys() if plain.get(name) != made.get(name)):
        raise _impossible(folder, method, f"{wrong[0]} is not what it would be in a model that was never quantised")


def _impossible(folder: Path, method: str, reason: str) -> CannotMeasureError:
    return CannotMeasureError(
        f"{folder} holds weights quantised by {method} that cannot be de-quantised for the reference arm: "
        f"{reason.rstrip('.')}.",
        remedy="Install what the method needs, or do without a reference.",
    )
