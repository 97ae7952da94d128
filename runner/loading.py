"""Loads a model as a recipe says: explicit format, device and attention, from local safetensors, or not at all.

Refuses weights that do not fill the model, because transformers would fill the rest with random numbers. Knows nothing
of sampling, determinism switches or canaries.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.utils import logging as _transformers_logging

from driftpin.errors import CannotMeasureError, ModelError
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm
from runner.model_folder import check_folder, read_json
from runner.rotary import refuse_overlooked_rotary

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SHOWN = 8  # names listed in a message
TOKENIZER_CONFIG = "tokenizer_config.json"
NEW_DTYPE_NAME = (4, 56)  # since then `dtype`, before `torch_dtype`

transformers_logging: Any = _transformers_logging  # without annotations of its own


Read = Callable[[Path, Recipe, torch.dtype], tuple[Any, dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model ready to run: on its device, in evaluation mode, without gradients. Nothing in it is missing."""

    model: Any  # a transformers PreTrainedModel
    tokenizer: Any  # a transformers PreTrainedTokenizerBase
    path: Path
    dtype: torch.dtype  # asked for; single parameters may differ, see the histogram in the environment
    files: tuple[Path, ...]  # weight files
    missing_keys: tuple[str, ...] = ()  # always empty here; kept so that the fact can be recorded
    unexpected_keys: tuple[str, ...] = ()  # in the files, not in the model
    warnings: tuple[str, ...] = field(default=())  # what transformers said meanwhile


def load_model(recipe: Recipe, arm: Arm, read: Read | None = None) -> Loaded:
    """Model and tokenizer; `ModelError` for what is no whole model, `CannotMeasureError` for a lacking device.

    `read` replaces `read_model`. The reference arm runs no parameter in another format than float32.
    """
    dtype, device = dtype_of(recipe, arm), device_of(recipe)
    files = check_folder(recipe.path)
    folder = files[0].parent
    with quiet() as said:
        tokenizer = read_tokenizer(folder, recipe)
        model, info = (read or read_model)(folder, recipe, dtype)
        _refuse_gaps(folder, info)
        refuse_overlooked_rotary(folder, model.config)
        if arm is Arm.REFERENCE:
            _refuse_narrow(model)
        model = _placed(model, device)
    return Loaded(
        model=model,
        tokenizer=tokenizer,
        path=folder,
        dtype=dtype,
        files=files,
        unexpected_keys=tuple(sorted(info["unexpected_keys"])),
        warnings=tuple(dict.fromkeys(said)),
    )


def dtype_of(recipe: Recipe, arm: Arm) -> torch.dtype:
    """float32 in the reference arm, else the recipe's; `ModelError` for one that driftpin does not run."""
    if arm is Arm.REFERENCE:
        return torch.float32
    if recipe.dtype not in DTYPES:
        raise ModelError(f"{recipe.dtype!r} is no dtype that a model runs in.", remedy=f"Use {', '.join(DTYPES)}.")
    return DTYPES[recipe.dtype]


def device_of(recipe: Recipe) -> torch.device:
    """The recipe's device; `CannotMeasureError` names what is there when it is not."""
    try:
        device = torch.device(recipe.device)
    except RuntimeError as error:
        raise ModelError(f"{recipe.device!r} is no device.", remedy='Use "cpu" or "cuda:0".') from error
    here = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    wanted = f"cuda:{device.index or 0}" if device.type == "cuda" else device.type
    if wanted not in here:
        message = f"There is no {recipe.device} here: torch {torch.__version__} sees {', '.join(here)}."
        raise CannotMeasureError(message, remedy="Run this target where the device is, or name another device.")
    return torch.device(wanted)


def read_tokenizer(folder: Path, recipe: Recipe) -> Any:
    """The folder's tokenizer; `ModelError` where it has none that can be read."""
    try:
        return transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=recipe.trust_remote_code
        )
    except LOAD_ERRORS as error:
        remedy = OTHER_MAJOR if _saved_by_a_newer(folder) else PUT_TOKENIZER
        raise ModelError(f"The tokenizer in {folder} cannot be loaded: {first_line(error)}", remedy=remedy) from error


PUT_TOKENIZER = "Put tokenizer.json and tokenizer_config.json beside the weights."
OTHER_MAJOR = (
    "transformers 5 saved it so that 4 cannot read it: run it where transformers 5 is, or save it again with 4."
)


def _saved_by_a_newer(folder: Path) -> bool:
    """transformers 4 has neither that class nor a list under that name, and its error says so of neither."""
    if version() >= (5, 0) or not (folder / TOKENIZER_CONFIG).is_file():
        return False
    settings = read_json(folder / TOKENIZER_CONFIG)
    listed = isinstance(settings.get("extra_special_tokens"), list)
    return listed or settings.get("tokenizer_class") == "TokenizersBackend"


def read_model(folder: Path, recipe: Recipe, dtype: torch.dtype, **more: Any) -> tuple[Any, dict[str, Any]]:
    """The model on the CPU and transformers' own account of the keys; `more` goes to `from_pretrained`."""
    try:
        both: Any = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            **{dtype_name(): dtype},
            attn_implementation=recipe.attention,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=recipe.trust_remote_code,
            output_loading_info=True,
            **more,
        )
    except torch.OutOfMemoryError as error:
        raise CannotMeasureError(f"{folder} does not fit into memory.", remedy="Use a larger machine.") from error
    except LOAD_ERRORS as error:
        raise ModelError(f"The model in {folder} cannot be loaded: {first_line(error)}", remedy=SEE_FILES) from error
    model, info = both
    return model, info


LOAD_ERRORS = (OSError, ValueError, RuntimeError, ImportError, KeyError, TypeError, AttributeError)
SEE_FILES = "Check that config.json belongs to these weights and that this transformers knows the architecture."


def _refuse_gaps(folder: Path, info: dict[str, Any]) -> None:
    """Keys filled by tied weights are not missing: transformers has taken them out already."""
    if missing := sorted(info["missing_keys"]):
        raise ModelError(f"The weights in {folder} lack {listed(missing)}.", remedy=RANDOM)
    if mismatched := sorted(str(entry[0]) for entry in info.get("mismatched_keys") or ()):
        raise ModelError(f"The weights in {folder} have other sizes than config.json: {listed(mismatched)}.")


def _refuse_narrow(model: Any) -> None:
    if narrow := sorted(name for name, p in model.named_parameters() if p.dtype is not torch.float32):
        raise CannotMeasureError(f"The reference arm runs in float32, and these are not: {listed(narrow)}.")


RANDOM = "transformers would fill them with random numbers. Take the whole model, or correct config.json."


def _placed(model: Any, device: torch.device) -> Any:
    try:
        return model.to(device).eval().requires_grad_(False)
    except torch.OutOfMemoryError as error:
        raise CannotMeasureError(
            f"The model does not fit on {device}.", remedy="Free the device, or use another."
        ) from error


@contextmanager
def quiet() -> Iterator[list[str]]:
    """No progress bars and no text on the terminal; what was said is collected instead."""
    said: list[str] = []
    logger, handler = logging.getLogger("transformers"), _Collector(said)
    bars, handlers, propagate = transformers_logging.is_progress_bar_enabled(), logger.handlers[:], logger.propagate
    transformers_logging.disable_progress_bar()
    logger.handlers, logger.propagate = [handler], False
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
        said.extend(str(entry.message) for entry in caught)
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        if bars:
            transformers_logging.enable_progress_bar()


class _Collector(logging.Handler):
    """Keeps the text of log records."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(level=logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        """Add one record's text."""
        self._said.append(record.getMessage())


def dtype_name() -> str:
    """What this transformers calls the keyword."""
    return "dtype" if version() >= NEW_DTYPE_NAME else "torch_dtype"


def version() -> tuple[int, int]:
    """Major and minor of this transformers."""
    major, minor = transformers.__version__.split(".")[:2]
    return int(major), int(minor)


def first_line(error: BaseException) -> str:
    """Of an error's text; its type where it has none."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


def listed(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
