"""Facts about installed distributions that compute, and about torch's own build. Knows nothing of what is loaded."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping
from importlib.metadata import Distribution

import torch

from driftpin.canonical import sha256_hex
from driftpin.environment.fact import Fact, Unknown

RELEVANT = re.compile(
    r"accelerate|bitsandbytes|cuda-.*|einops|flash-attn.*|flash-linear-attention|intel-openmp|jinja2|kernels|mkl|numpy"
    r"|nvidia-.*|optimum.*|pytorch-triton.*|regex|safetensors|sentencepiece|tiktoken|tokenizers|torch|torchao"
    r"|transformers|triton|xformers"
)
RECORDED = re.compile(r"torch|triton|pytorch-triton.*|nvidia-(?!ml-py).*")
INSTALLED_HERE = re.compile(
    r".*\.pyc|\.\./.*|.*\.dist-info/(INSTALLER|REQUESTED|RECORD|direct_url\.json|uv_cache\.json)"
)


def library_facts() -> dict[str, Fact]:
    """`library.<name>` with versions, `library.<name>.record` for the large ones, and torch's build."""
    facts: dict[str, Fact] = {}
    for name, distribution in distributions().items():
        if RELEVANT.fullmatch(name):
            facts[f"library.{name}"] = distribution.version
        if RECORDED.fullmatch(name):
            facts[f"library.{name}.record"] = record_digest(distribution.read_text("RECORD"))
    return facts | torch_facts()


def other_packages() -> dict[str, str]:
    """Versions of all other distributions by name."""
    return {name: d.version for name, d in sorted(distributions().items()) if not RELEVANT.fullmatch(name)}


def distributions() -> Mapping[str, Distribution]:
    """Installed distributions by normalised name; of two with one name, the one that import finds first."""
    found: dict[str, Distribution] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:  # a half-removed distribution has none
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution)
    return found


def record_digest(record: str | None) -> Fact:
    """sha256 over the RECORD's sorted lines, without those that depend on where and by what it was installed."""
    if record is None:
        return Unknown("the distribution has no RECORD")
    lines = (line.strip() for line in record.splitlines())
    kept = sorted(line for line in lines if line and not INSTALLED_HERE.fullmatch(line.split(",", 1)[0].strip('"')))
    return sha256_hex("\n".join(kept).encode())


def torch_facts() -> dict[str, Fact]:
    """Git revision, CUDA and HIP versions it was built for, and the local part of its version ("cpu", "cu130")."""
    return {
        "library.torch.git": torch.version.git_version,
        "library.torch.cuda": torch.version.cuda,
        "library.torch.hip": torch.version.hip,
        "library.torch.local": torch.__version__.partition("+")[2],
    }
