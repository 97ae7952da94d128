"""Facts about environment variables that steer computing libraries. Secrets and locations are never read out.

Three states: None is unset, "" is empty, other text is the value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from driftpin.environment.fact import Fact

ALWAYS = (  # reported although unset
    *("OMP_NUM_THREADS", "OMP_SCHEDULE", "OMP_DYNAMIC", "MKL_NUM_THREADS", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"),
    *("ONEDNN_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE", "ATEN_CPU_CAPABILITY", "LD_PRELOAD"),
    *("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
    *("CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "TORCHDYNAMO_DISABLE"),
)
STEERING = re.compile(
    r"(OMP|GOMP|KMP|MKL|ONEDNN|DNNL|ATEN|CUBLAS|CUBLASLT|CUDA|CUDNN|NCCL|NVIDIA|PYTORCH|TRITON|TRANSFORMERS|HF"
    r"|TORCHINDUCTOR|TORCHDYNAMO|TORCH)_.*|TORCH.*"
)
SECRET = re.compile(r".*(TOKEN|KEY|SECRET|PASSW|AUTH|CREDENTIAL).*")
LOCATION = re.compile(r".*(HOME|CACHE|_DIR|_PATH|ENDPOINT|URL|LOG|LOGS|VERBOSE|VERBOSITY|PROGRESS_BARS)")
PLACEMENT = re.compile(r"(CUDA|NVIDIA)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER")


def variable_facts(environ: Mapping[str, str] = os.environ) -> dict[str, Fact]:
    """`variable.<NAME>`: the named ones always, others with a steering prefix where they are set."""
    names = {*ALWAYS, *(name for name in environ if steers(name))}
    return {f"variable.{name}": environ.get(name) for name in sorted(names)}


def placement_facts(environ: Mapping[str, str] = os.environ) -> dict[str, Fact]:
    """`placement.<NAME>`: which device a process sees, which is no property of the numbers."""
    return {f"placement.{name}": value for name, value in sorted(environ.items()) if PLACEMENT.fullmatch(name)}


def steers(name: str) -> bool:
    """Whether a variable may change numbers and may be shown."""
    hidden = SECRET.fullmatch(name) or LOCATION.fullmatch(name) or PLACEMENT.fullmatch(name)
    return bool(STEERING.fullmatch(name)) and not hidden
