"""Puts single tensors of a checkpoint into a model as transformers itself would: renamed, fused, widened to float32.

transformers 5 renames and fuses through tables of its own, which are used here; transformers 4 only renames. Knows no
files. A version whose loader is built otherwise is refused, never guessed at.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
import transformers
from accelerate.utils import set_module_tensor_to_device  # type: ignore[import-untyped]

from driftpin.errors import CannotMeasureError
from runner.loading import LOAD_ERRORS, first_line

WHOLE = 'Say options = { reference = "whole" } if the memory suffices, or use another version of transformers.'


class Filler(Protocol):
    """How one version of transformers gets tensors into a model."""

    def target(self, name: str) -> str | None:
        """The parameter or buffer that a checkpoint's tensor ends up in (the first of several); None for none."""

    def fill(self, tensors: Mapping[str, torch.Tensor], device: torch.device) -> None:
        """Put tensors, by their checkpoint names, where they belong; all parts of a fused one must be there."""


def filler_for(model: Any) -> Filler:
    """The one that fits the installed transformers; `CannotMeasureError` where none does."""
    try:
        return _Converting(model) if int(transformers.__version__.partition(".")[0]) >= 5 else _Renaming(model)
    except LOAD_ERRORS as error:
        raise _other_loader(error) from error


class _Converting:
    """transformers 5: `WeightRenaming` and `WeightConverter`, the tables behind `from_pretrained`."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._core: Any = importlib.import_module("transformers.core_model_loading")
        tables: Any = importlib.import_module("transformers.conversion_mapping")
        self._config_of: Callable[..., Any] = importlib.import_module("transformers.modeling_utils").LoadStateDictConfig
        self._mapping: list[Any] = tables.get_model_conversion_mapping(model)
        self._renamings = [t for t in self._mapping if isinstance(t, self._core.WeightRenaming)]
        self._converters = [t for t in self._mapping if isinstance(t, self._core.WeightConverter)]
        self._state: dict[str, torch.Tensor] = model.state_dict()

    def target(self, name: str) -> str | None:
        renamed = self._renamed(name, self._renamings, self._converters)
        if renamed not in self._state and name in self._state:
            renamed = self._renamed(name, [], [])
        return renamed if renamed in self._state else None

    def fill(self, tensors: Mapping[str, torch.Tensor], device: torch.device) -> None:
        asked = self._config_of(
            device_map={"": device}, dtype=torch.float32, weight_mapping=self._mapping, use_safetensors=True
        )
        try:
            info, _ = self._core.convert_and_load_state_dict_in_model(
                model=self._model, state_dict=dict(tensors), load_config=asked
            )
        except (TypeError, AttributeError) as error:
            raise _other_loader(error) from error
        if wrong := [*info.mismatched_keys, *info.conversion_errors, *info.error_msgs]:
            raise CannotMeasureError(f"Weights do not fit the model: {wrong[0]}.", remedy=WHOLE)

    def _renamed(self, name: str, renamings: list[Any], converters: list[Any]) -> str:
        renamed, _ = self._core.rename_source_key(
            name, renamings, converters, self._model.base_model_prefix, self._state
        )
        return str(renamed)


class _Renaming:
    """transformers 4: names only, by the class's own table and with or without the prefix of the base model."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._state = set(model.state_dict())
        self._patterns: Mapping[str, str] = getattr(model, "_checkpoint_conversion_mapping", None) or {}

    def target(self, name: str) -> str | None:
        renamed = name
        for pattern, replacement in self._patterns.items():
            renamed = re.sub(pattern, replacement, renamed)
        prefix = f"{self._model.base_model_prefix}."
        forms = (renamed, prefix + renamed, renamed.removeprefix(prefix), name)
        return next((form for form in forms if form in self._state), None)

    def fill(self, tensors: Mapping[str, torch.Tensor], device: torch.device) -> None:
        for name, tensor in tensors.items():
            wide = tensor.float() if tensor.is_floating_point() else tensor
            target = self.target(name)
            if target is not None:
                set_module_tensor_to_device(self._model, target, device, value=wide, dtype=wide.dtype)


def _other_loader(error: BaseException) -> CannotMeasureError:
    return CannotMeasureError(
        f"transformers {transformers.__version__} loads weights in a way that driftpin cannot do block by block: "
        f"{first_line(error)}.",
        remedy=WHOLE,
    )
