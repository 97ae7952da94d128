"""Tells a framework's refusal to run here from a defect of ours. Knows error texts, nothing of models."""

from __future__ import annotations

import re

from driftpin.errors import CannotMeasureError

NO_DETERMINISTIC = re.compile(r"^\s*(?P<operation>.+?) does not have a deterministic (?:CUDA )?implementation", re.M)
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
WARN_REMEDY = (
    'Choose another attention or cache setting, or set nondeterministic_ops = "warn" to measure in spite of it.'
)
UNSUPPORTED = {
    "No viable backend for scaled_dot_product_attention": "the pinned SDPA back end has no kernel for this device",
    "No available kernel": "the pinned SDPA back end has no kernel for these shapes",
    "pack_vnni2": "its bfloat16 kernel needs AVX-512, which ATEN_CPU_CAPABILITY switches off",
    "no kernel image is available": "this build of torch has no kernels for this GPU",
}


def deterministic_error(error: RuntimeError) -> CannotMeasureError | None:
    """The refusal behind torch's "does not have a deterministic implementation", naming the operation; else None."""
    found = NO_DETERMINISTIC.search(str(error))
    if found:
        operation = found["operation"].strip()
        return CannotMeasureError(f"The operation {operation} has no deterministic version here.", remedy=WARN_REMEDY)
    if CUBLAS in str(error):
        return CannotMeasureError(
            "cuBLAS was started without a fixed workspace.",
            remedy=f"Set {CUBLAS}=:4096:8 before the process starts, or let driftpin start it.",
        )
    return None


def cannot_run(error: RuntimeError) -> CannotMeasureError | None:
    """Any refusal known here (no deterministic version, no kernel for this machine), or None for all other errors."""
    refused = deterministic_error(error)
    if refused is not None:
        return refused
    for mark, reason in UNSUPPORTED.items():
        if mark in str(error):
            return CannotMeasureError(
                f"This target cannot run here: {reason}.",
                remedy='Pin another back end (sdpa = "math" runs everywhere) or another dtype, or use another machine.',
            )
    return None
