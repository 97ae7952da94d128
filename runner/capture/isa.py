"""The instruction sets that torch's CPU libraries really use. oneDNN and MKL tell theirs only in verbose mode, which is
read from one child process and remembered per library build, CPU class and steering variables.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import torch

from driftpin.canonical import digest_of
from driftpin.environment.fact import Fact, Unknown
from driftpin.settings.cache import cache_folder
from runner.capture.cpu import cpu_class, cpuinfo, flags
from runner.capture.files import write_atomically
from runner.capture.image import image_facts
from runner.capture.reading import known_or_unknown
from runner.capture.variables import variable_facts

# The first product calls MKL; a tensor in oneDNN's own layout calls oneDNN whatever instruction set it is held to.
CHILD = "import torch; torch.set_num_threads(1); a = torch.ones(32, 32); a @ a; torch.relu(a.to_mkldnn())"
VERBOSE = {"ONEDNN_VERBOSE": "1", "MKL_VERBOSE": "1"}
SPEAKS = {
    "isa.onednn": re.compile(r"^onednn_verbose,(?:v\d+,)?info,cpu,isa:(.+)$", re.MULTILINE),
    "isa.mkl": re.compile(r"^MKL_VERBOSE .*?architecture (.+?), (?:Lnx|Win|OSX)", re.MULTILINE),
}
PATIENCE = 120  # seconds for the child, which imports torch


def isa_facts() -> dict[str, Fact]:
    """`isa.aten`, `isa.onednn`, `isa.mkl`; a library that this torch is built without gives None."""
    backends: Any = torch.backends
    built = {"isa.onednn": backends.mkldnn.is_available(), "isa.mkl": backends.mkl.is_available()}
    facts: dict[str, Fact] = {"isa.aten": known_or_unknown(backends.cpu.get_cpu_capability)}
    facts |= {name: None for name, there in built.items() if not there}
    if any(built.values()):
        spoken = _spoken()
        facts |= {name: spoken if isinstance(spoken, Unknown) else parse(name, spoken) for name in built if built[name]}
    return facts


def parse(name: str, text: str) -> Fact:
    """The instruction set out of the verbose text."""
    found = SPEAKS[name].search(text)
    return found.group(1).strip() if found else Unknown("the verbose run does not tell it")


def _spoken() -> str | Unknown:
    note = cache_folder() / "isa" / digest_of(_circumstances())
    try:
        return note.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = run_child(os.environ)
    if isinstance(text, str):
        with contextlib.suppress(OSError):  # a read-only cache costs seconds, not correctness
            write_atomically(note, text)
    return text


def _circumstances() -> list[Any]:
    info = cpuinfo()
    build = [torch.__version__, torch.version.git_version, torch.__config__.show()]
    return [build, cpu_class(info), flags(info), image_facts().get("image.lock") or "", variable_facts(), CHILD]


def run_child(environ: Mapping[str, str]) -> str | Unknown:
    """The verbose lines of one call of each library, without times, or why there are none."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            env={**environ, **VERBOSE},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Unknown(f"the verbose run failed: {type(error).__name__}")
    lines = (done.stdout + "\n" + done.stderr).splitlines()
    return "\n".join(line for line in lines if any(pattern.search(line) for pattern in SPEAKS.values()))
