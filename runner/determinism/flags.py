"""The framework's global switches: how each is set and how it is read back. Knows nothing of recipes.

TF32 has two sets of switches in torch: the old booleans (`allow_tf32`) and, since 2.9, `fp32_precision`. After a write
through the new one, reading an old one raises, so exactly one set is chosen by version and the other never touched.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from runner.determinism.applied import Read

NEW_PRECISION_API = (2, 9)
IEEE = "ieee"
PRECISION_NEW = (
    "fp32_precision",
    "cuda.matmul.fp32_precision",
    "cudnn.fp32_precision",
    "cudnn.conv.fp32_precision",
    "cudnn.rnn.fp32_precision",
    "mkldnn.fp32_precision",
    "mkldnn.matmul.fp32_precision",
    "mkldnn.conv.fp32_precision",
    "mkldnn.rnn.fp32_precision",
)
PRECISION_OLD = ("cuda.matmul.allow_tf32", "cudnn.allow_tf32")
LOOSENING = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
RECORDED = (
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cuda.matmul.allow_fp16_accumulation",
    "cudnn.enabled",
    "mkldnn.enabled",
)


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One switch: the value asked for, how to set it and how to read it."""

    asked: Any
    set: Callable[[], Any]
    read: Read


def torch_version() -> tuple[int, int]:
    """Major and minor version of torch."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def seed_flags(seed: int) -> dict[str, Flag]:
    """Seeds of python, numpy, torch and every device; python and numpy are read by the state that the seed leaves."""
    return {
        "seed.python": Flag(asked=seed, set=partial(random.seed, seed), read=lambda: _seeded_python(seed)),
        "seed.numpy": Flag(asked=seed, set=partial(np.random.seed, seed), read=_numpy_seed),
        "seed.torch": Flag(asked=seed, set=partial(torch.manual_seed, seed), read=torch.initial_seed),
    }


def _seeded_python(seed: int) -> int | None:
    return seed if random.getstate() == random.Random(seed).getstate() else None  # noqa: S311


def _numpy_seed() -> int:
    return int(np.random.get_state(legacy=False)["state"]["key"][0])


def mode_flags(*, warn_only: bool) -> dict[str, Flag]:
    """Deterministic algorithms, cudnn's own switches, and no compilation."""
    deterministic = partial(torch.use_deterministic_algorithms, True, warn_only=warn_only)
    return {
        "deterministic_algorithms": Flag(
            asked=True, set=deterministic, read=torch.are_deterministic_algorithms_enabled
        ),
        "deterministic_warn_only": Flag(
            asked=warn_only, set=_nothing, read=torch.is_deterministic_algorithms_warn_only_enabled
        ),
        "cudnn.deterministic": backend_flag("cudnn.deterministic", True),
        "cudnn.benchmark": backend_flag("cudnn.benchmark", False),
        "compile_disabled": Flag(asked=True, set=_disable_compile, read=_compile_disabled),
    }


def precision_flags(version: tuple[int, int]) -> dict[str, Flag]:
    """No TF32 anywhere, through the one interface that fits torch's version."""
    if version >= NEW_PRECISION_API:
        return {name: backend_flag(name, IEEE) for name in PRECISION_NEW if _exists(name)}
    return {name: backend_flag(name, False) for name in PRECISION_OLD}


def strict_flags() -> dict[str, Flag]:
    """No variable that lets oneDNN compute float32 products in a smaller format: it reads them when it first runs."""
    return {
        f"variable.{name}": Flag(
            asked=None, set=partial(os.environ.pop, name, None), read=partial(os.environ.get, name)
        )
        for name in LOOSENING
    }


def thread_flags(threads: int | None) -> dict[str, Flag]:
    """The number of CPU threads, if one is asked for."""
    if threads is None:
        return {}
    return {"threads": Flag(asked=threads, set=partial(torch.set_num_threads, threads), read=torch.get_num_threads)}


def recorded() -> dict[str, Read]:
    """Switches that are read and left alone."""
    readers: dict[str, Read] = {name: partial(_get_backend, name) for name in RECORDED}
    readers |= {
        "threads": torch.get_num_threads,
        "interop_threads": torch.get_num_interop_threads,
        "float32_matmul_precision": torch.get_float32_matmul_precision,
        "cublas_workspace_config": partial(os.environ.get, "CUBLAS_WORKSPACE_CONFIG"),
        "fill_uninitialized_memory": partial(getattr, torch.utils.deterministic, "fill_uninitialized_memory"),
    }
    return readers


def backend_flag(name: str, value: Any) -> Flag:
    """A flag under `torch.backends`, by dotted name."""
    return Flag(asked=value, set=partial(_set_backend, name, value), read=partial(_get_backend, name))


def _holder(name: str) -> tuple[Any, str]:
    *path, last = name.split(".")
    holder: Any = torch.backends
    for part in path:
        holder = getattr(holder, part)
    return holder, last


def _get_backend(name: str) -> Any:
    holder, last = _holder(name)
    return getattr(holder, last)


def _set_backend(name: str, value: Any) -> None:
    holder, last = _holder(name)
    setattr(holder, last, value)


def _exists(name: str) -> bool:
    try:
        _get_backend(name)
    except AttributeError:
        return False
    return True


def _nothing() -> None:
    """Set together with another flag."""


def _disable_compile() -> None:
    torch._dynamo.config.disable = True


def _compile_disabled() -> bool:
    return bool(torch._dynamo.config.disable)
