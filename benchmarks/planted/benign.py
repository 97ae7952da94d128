"""Benign changes that this machine can make: none of them changes what the model is or what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.planted.change import ROUNDING, UNSAID, Change, Expected, Kind
from benchmarks.planted.models import Model
from driftpin.verdict.kind import VerdictKind

QUIET = frozenset({VerdictKind.MATCH, VerdictKind.NUMERIC})
CALM = Expected(verdicts=QUIET, classes=frozenset({ROUNDING, UNSAID}))
DECLARED = Expected(verdicts=QUIET | {VerdictKind.INCOMPLETE}, classes=frozenset({ROUNDING, UNSAID}))
REFUSED = Expected(verdicts=frozenset(), classes=frozenset({UNSAID}))

ONEDNN = {
    "AVX2": "avx2",
    "AVX512_CORE": "avx512f",
    "AVX512_CORE_BF16": "avx512_bf16",
    "AVX512_CORE_FP16": "avx512_fp16",
}
MKL = {"AVX2": "avx2", "AVX512": "avx512f"}
CBWR = {"COMPATIBLE": "sse2", "AVX2": "avx2", "AVX512": "avx512f"}
AMX = "amx_tile"


def benign(model: Model, pairs: Path | None) -> list[Change]:
    """Every benign change for a model; `pairs` holds overlay folders of other library versions."""
    return [*_attention(), *_caps(), *_aten(model), *_shapes(), *_libraries(model, pairs)]


def _calm(name: str, what: str, expected: Expected = CALM, kind: Kind = Kind.BENIGN, **parts: Any) -> Change:
    return Change(id=name, what=what, kind=kind, expected=expected, **parts)


def _attention() -> Iterator[Change]:
    same = Expected(verdicts=frozenset({VerdictKind.MATCH}), classes=CALM.classes, always=True)
    yield _calm("unchanged", "nothing", same)
    yield _calm("eager", "attention eager instead of sdpa", recipe={"attention": "eager"})
    yield _calm("flash", "SDPA back end flash instead of math", recipe={"sdpa": "flash"})
    yield _calm("threads-2", "two threads instead of one", recipe={"threads": 2})


def _caps() -> Iterator[Change]:
    """Instruction-set caps below what the CPU has; a cap at or above it would change nothing."""
    for title, variable, levels in (
        ("oneDNN", "ONEDNN_MAX_CPU_ISA", ONEDNN),
        ("MKL", "MKL_ENABLE_INSTRUCTIONS", MKL),
        ("MKL reproducibility mode", "MKL_CBWR", CBWR),
    ):
        for level, flag in levels.items():
            if flag in cpu_flags():
                name = f"{variable.split('_')[0].lower()}-{variable.split('_')[1].lower()}-{level.lower()}"
                yield _calm(name, f"{title} held to {level}", variables={variable: level})


def _aten(model: Model) -> Iterator[Change]:
    """torch's own dispatch. With bfloat16 its flash kernel raises on machines with AMX: it cannot run, and that is
    no drift. The math back end has no such kernel.
    """
    variables = {"ATEN_CPU_CAPABILITY": "avx2"}
    yield _calm("aten-avx2", "torch held to AVX2", variables=variables)
    if model.dtype == "bfloat16" and AMX in cpu_flags():
        what = "torch held to AVX2 with flash attention (cannot run with AMX)"
        yield _calm("aten-avx2-flash", what, REFUSED, Kind.REFUSED, variables=variables, recipe={"sdpa": "flash"})


def _shapes() -> Iterator[Change]:
    """A server that batches, pads or keeps another cache behind one's back: done in the process, declared as before.

    What is *declared* otherwise is refused by the comparison, which `static` shows.
    """
    yield _calm("batched", "run beside three other rows, undeclared", patch="batched")
    yield _calm("padded", "left-padded beside three longer rows, undeclared", patch="padded")
    yield _calm("static", "static instead of dynamic cache, declared", DECLARED, recipe={"cache": "static"})
    yield _calm("static-hidden", "static cache, undeclared", recipe={"cache": "static"}, patch="static_hidden")


def _libraries(model: Model, pairs: Path | None) -> Iterator[Change]:
    """Other versions of transformers with the same torch; one that is older than the model must refuse it."""
    for folder in sorted(pairs.iterdir()) if pairs and pairs.is_dir() else ():
        for installed in sorted(folder.glob("transformers-*.dist-info")):
            version = installed.name.removeprefix("transformers-").removesuffix(".dist-info")
            variables = {"PYTHONPATH": str(folder.resolve())}
            known = tuple(int(part) for part in version.split(".")[:2]) >= model.since
            what = f"transformers {version}" + ("" if known else " (does not know the model)")
            expected, kind = (CALM, Kind.BENIGN) if known else (REFUSED, Kind.REFUSED)
            yield _calm(f"transformers-{version}", what, expected, kind, variables=variables)


def cpu_flags() -> frozenset[str]:
    """Flags of the first processor."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return frozenset(next((line.split(":")[1] for line in lines if line.startswith("flags")), "").split())
