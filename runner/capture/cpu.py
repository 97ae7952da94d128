"""Facts about the CPU as the operating system tells them. Knows no torch."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# Instruction sets that numerical libraries choose kernels by, x86 first, then Arm, widest last.
NUMERIC = re.compile(r"fma|f16c|avx|avx2|avx512.*|avx_vnni.*|avx10.*|amx_.*|asimd.*|sve.*|sme|sme2|bf16|i8mm|fphp")
TELLING = (  # the few that go into the name of a device class
    *("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_int8", "amx_bf16", "amx_fp16"),
    *("asimddp", "sve", "sve2", "sme", "bf16", "i8mm"),
)


@cache
def cpuinfo() -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo; empty where there is none."""
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace").split("\n\n", 1)[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def flags(info: dict[str, str]) -> list[str]:
    """Numeric instruction sets, sorted."""
    words = info.get("flags", info.get("Features", "")).split()
    return sorted({word for word in words if NUMERIC.fullmatch(word)})


def cpu_class(info: dict[str, str]) -> str:
    """Like "cpu:GenuineIntel-6-167:avx2,...,amx_bf16": vendor, family, model and the telling instruction sets."""
    if "vendor_id" in info:
        maker = "-".join(info.get(part, "?") for part in ("vendor_id", "cpu family", "model"))
    elif "CPU implementer" in info:
        maker = "-".join(info.get(part, "?") for part in ("CPU implementer", "CPU part", "CPU variant"))
    else:
        maker = platform.machine() or "unknown"
    here = set(flags(info))
    return f"cpu:{maker}:{','.join(flag for flag in TELLING if flag in here)}".rstrip(":")
