"""Facts about the shared objects that compute, as mapped into this process. Knows nothing of who installed them."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from driftpin.environment.fact import Fact, Unknown
from runner.capture.files import file_sha256
from runner.capture.reading import known_or_unknown

MAPS = Path("/proc/self/maps")
DELETED = " (deleted)"
COMPUTING = re.compile(
    r"libtorch.*|libc10.*|libcuda\.so.*|libcudart.*|libcublas.*|libcudnn.*|libcufft.*|libcusolver.*|libcusparse.*"
    r"|libnccl.*|libnvrtc.*|libnvJitLink.*|libamdhip64.*|librocblas.*|libhipblas.*|libMIOpen.*|libmkl.*|libdnnl.*"
    r"|libiomp.*|libgomp.*|libomp.*|libm[-.].*|libc[-.].*"
)


def object_facts(maps: Path = MAPS) -> dict[str, Fact]:
    """`object.<file name>`: sha256, or the sorted hashes where several files of that name are mapped."""
    try:
        paths = mapped(maps.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as error:
        return {"object": Unknown(f"the memory map cannot be read: {error.strerror}")}
    by_name: dict[str, list[Fact]] = {}
    for path in paths:
        by_name.setdefault(_name(path), []).append(_digest(path))
    return {f"object.{name}": _one(digests) for name, digests in by_name.items()}


def mapped(maps: str) -> list[str]:
    """Paths of the mapped objects on the allow-list, sorted, each once; a deleted one keeps its mark."""
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = {parts[5] for parts in fields if len(parts) == 6 and parts[5].startswith("/")}
    return sorted(path for path in paths if ".so" in path and COMPUTING.fullmatch(_name(path)))


def _name(path: str) -> str:
    return path.removesuffix(DELETED).rsplit("/", 1)[-1]


def _digest(path: str) -> Fact:
    if path.endswith(DELETED):
        return Unknown("the file was replaced or removed while this process uses it")
    return known_or_unknown(partial(file_sha256, Path(path)))


def _one(digests: list[Fact]) -> Fact:
    unknown = next((digest for digest in digests if isinstance(digest, Unknown)), None)
    if unknown is not None or len(digests) == 1:
        return digests[0] if unknown is None else unknown
    return sorted(digests)
