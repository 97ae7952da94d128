"""A model without its weights: every module in its place, parameters on the meta device, buffers real.

Knows a model folder's configuration; reads no weight file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import init_empty_weights  # type: ignore[import-untyped]

from driftpin.errors import ModelError
from driftpin.settings.recipe import Recipe
from runner.loading import LOAD_ERRORS, SEE_FILES, dtype_name, first_line, quiet


def empty_model(folder: Path, recipe: Recipe) -> Any:
    """The model in float32, in evaluation mode; what its configuration says of quantisation is left out.

    Buffers that no file holds (rotary frequencies, masks) are computed on the CPU as an ordinary load computes them.
    Raises `ModelError` for a configuration that this transformers cannot build.
    """
    try:
        with quiet(), init_empty_weights(include_buffers=False):
            config: Any = transformers.AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=recipe.trust_remote_code
            )
            if hasattr(config, "quantization_config"):
                del config.quantization_config
            classes: Any = transformers.AutoModelForCausalLM
            model: Any = classes.from_config(
                config,
                **{dtype_name(): torch.float32},
                attn_implementation=recipe.attention,
                trust_remote_code=recipe.trust_remote_code,
            )
    except LOAD_ERRORS as error:
        raise ModelError(f"The model in {folder} cannot be built: {first_line(error)}", remedy=SEE_FILES) from error
    return model.eval().requires_grad_(False)


def count_parameters(model: Any) -> int:
    """Numbers in all parameters, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters())
