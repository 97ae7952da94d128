"""Faults: every one of them makes another model, another question, or a defective computation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.planted.change import HEAD, MODEL, NATIVE_PATH, UNSAID, Change, Expected, Kind
from benchmarks.planted.models import Model
from driftpin.verdict.kind import VerdictKind

DRIFT = frozenset({VerdictKind.DRIFT})
GONE = DRIFT | {VerdictKind.BROKEN}
ASKED = DRIFT | {VerdictKind.INCOMPARABLE, VerdictKind.INCOMPLETE}
NOISE = {"bfloat16": (-24, -9, -8, -7, -6, -5, -4), "float32": (-24, -20, -16, -12, -8, -6, -4)}
BITS = {  # by dtype: place of the bit, lowest mantissa bit first
    "bfloat16": {"mantissa-low": 0, "mantissa-high": 6, "exponent-low": 7, "exponent-high": 14, "sign": 15},
    "float32": {"mantissa-low": 0, "mantissa-high": 22, "exponent-low": 23, "exponent-high": 30, "sign": 31},
}
ROW = 5  # of the flipped and the non-finite element


def faults(model: Model) -> list[Change]:
    """Every fault that the model can have."""
    groups = (_noise, _elements, _blocks, _positions, _precision, _process, _around)
    return [change for group in groups for change in group(model)] + list(_experts(model))


def _fault(
    name: str,
    what: str,
    block: str | None = None,
    *,
    verdicts: frozenset[VerdictKind] = DRIFT,
    classes: frozenset[str] = frozenset({MODEL}),
    always: bool = False,
    **parts: Any,
) -> Change:
    expected = Expected(verdicts=verdicts, classes=classes, block=block, always=always)
    return Change(id=name, what=what, kind=Kind.FAULT, expected=expected, **parts)


def _noise(model: Model) -> Iterator[Change]:
    for power in NOISE[model.dtype]:
        what = f"every block weight times 1 + 2^{power} u"
        yield _fault(f"noise{power}", what, model.path(0), plant="noise", options={"value": power})


def _elements(model: Model) -> Iterator[Change]:
    block, tensor = model.path(model.block), model.mlp_out
    for name, bit in BITS[model.dtype].items():
        verdicts = GONE if name == "exponent-high" else DRIFT
        options = {"tensor": tensor, "bit": bit, "place": ROW}
        yield _fault(f"bit-{name}", f"one bit flipped: {name}", block, verdicts=verdicts, plant="flip", options=options)
    broken = frozenset({VerdictKind.BROKEN})
    said = frozenset({MODEL, UNSAID})
    options = {"tensor": tensor, "place": ROW}
    yield _fault("nan", "one weight is NaN", block, verdicts=broken, classes=said, plant="nan", options=options)
    yield _fault("damage", "a quarter of one tensor is zero", block, plant="damage", options={"tensor": tensor})


def _blocks(model: Model) -> Iterator[Change]:
    options = {"block": model.block}
    at = model.path(model.block)
    yield _fault("removed", "one block removed, the rest renumbered", at, plant="remove", options=options)
    yield _fault("identity", "one block adds nothing", at, plant="identity", options=options)
    yield _fault("half-mlp", "half of one MLP is silent", at, plant="half_mlp", options=options)


def _positions(model: Model) -> Iterator[Change]:
    first = model.path(0)
    for factor in (1.1, 0.1):
        yield _fault(f"rope-{factor}", f"RoPE base times {factor}", first, plant="rope", options={"value": factor})
    yield _fault("permuted", "queries and keys in interleaved order", first, plant="permute")


def _precision(model: Model) -> Iterator[Change]:
    for bits in (8, 6, 5, 4):
        what = f"block weights rounded to {bits} bits"
        yield _fault(f"int{bits}", what, model.path(0), plant="round", options={"bits": bits})


def _process(model: Model) -> Iterator[Change]:
    """Defects of the native path: the files are whole, and the reference arm does not have them."""
    native = frozenset({NATIVE_PATH})
    what = "keys and values rounded to fp8 in the cache (decode only)"
    yield _fault("kv-fp8-cache", what, model.path(0), classes=native, patch="kv_fp8_cache")
    yield from _caches(model, native)
    what = "keys and values rounded to fp8 in every forward"
    yield _fault("kv-fp8", what, model.path(0), classes=native, patch="kv_fp8")
    for name, chunks in (("split-k", 4), ("split-k-16", 16)):
        what = f"head in {chunks} chunks, partial sums in bfloat16"
        yield _fault(name, what, HEAD, classes=native, patch=name.replace("-", "_"))


def _caches(model: Model, native: frozenset[str]) -> Iterator[Change]:
    """Wrong values in the key-value cache: only decoding has them, so no score moves."""
    first, half, last = model.path(0), model.path(model.blocks // 2), model.path(model.blocks - 1)
    for patch, what, at in (
        ("values_0_last", "cached values of the last block are zero", last),
        ("values_05_one", "cached values of one block times 0.5", half),
        ("values_08_one", "cached values of one block times 0.8", half),
        ("values_08_all", "cached values of all blocks times 0.8", first),
        ("values_09_all", "cached values of all blocks times 0.9", first),
        ("page_lost", "four positions of the prompt are zero in the cache", first),
    ):
        yield _fault(patch.replace("_", "-"), f"{what} (decode only)", at, classes=native, patch=patch)


def _around(model: Model) -> Iterator[Change]:
    said = frozenset({MODEL, UNSAID})
    what = "repetition penalty 1.3 in the shipped settings"
    yield _fault("penalty", what, classes=said, always=True, plant="penalty")
    parts: dict[str, Any] = {"verdicts": ASKED, "classes": said, "always": True}
    yield _fault("template-space", "one space behind the template", **parts, plant="template")
    yield _fault("template-system", "a system line before the chat", **parts, plant="system")
    yield _fault("normalizer", "the tokenizer lower-cases", **parts, plant="normalizer", options={"words": "Lowercase"})
    if model.merge:
        yield _fault("merge", "one merge of the tokenizer gone", **parts, plant="merge", options={"words": model.merge})


def _experts(model: Model) -> Iterator[Change]:
    if not model.experts:
        return
    at = model.path(model.block)
    for power in (-8, -4):
        what = f"one router's weights times 1 + 2^{power} u"
        options = {"block": model.block, "value": power}
        yield _fault(f"router{power}", what, at, plant="router", options=options)
    options = {"block": model.block}
    yield _fault("experts-swapped", "one router exchanges two experts", at, plant="experts_swapped", options=options)
