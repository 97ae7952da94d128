"""The order of suspects: causes before what follows from them, and the microprobes' alibi for libraries. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driftpin.environment import ruling
from driftpin.environment.difference import FactDifference, has_prefix
from driftpin.environment.environment import Section
from driftpin.environment.microprobes import Microprobes, ProbeWord
from driftpin.environment.ruling import Matter, Ruling

# What follows from a cause when the weight files are the same: a library lays parameters out, fills buffers and writes
# its tokenizer its own way (transformers 4.57 and 5.24 differ in both on one folder: measured). An instruction set is
# chosen by a variable, by the processor, or by the library that torch brings (2.6 and 2.13 name it otherwise: seen).
CAUSES = ("dtype", "library.transformers", "library.torch", "library.tokenizers")
CHOSEN = ("device.class", "library.torch")
BROUGHT = (  # by a version of torch: its build, what it depends on, and nearly every object that computes
    *(f"library.torch.{part}" for part in ("record", "git", "local", "cuda", "hip")),
    *("library.triton", "library.nvidia", "object"),
)
FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "parameters": CAUSES[:3],
    "tokenizer": (CAUSES[1], CAUSES[3]),
    "isa.onednn": ("variable.ONEDNN_MAX_CPU_ISA", *CHOSEN),
    "isa.mkl": ("variable.MKL_CBWR", "variable.MKL_ENABLE_INSTRUCTIONS", *CHOSEN),
    "isa.aten": ("variable.ATEN_CPU_CAPABILITY", *CHOSEN),
    **dict.fromkeys(BROUGHT, ("library.torch",)),
}
WEIGHED = ("parameters", "tokenizer")  # excused only while the weight files are the same
ABOVE = ("library.transformers", "library.tokenizers", "library.accelerate")  # a microprobe calls none of these
BENEATH = ("dtype", "attention", "flag", "device", "isa", "driver", "object", "variable", "library.torch")


def ordered(
    known: Sequence[FactDifference], ruled: Sequence[Ruling], microprobes: Microprobes
) -> tuple[FactDifference, ...]:
    """The model, causes, the rest in its order, then what follows from a cause, then settings that no call uses."""
    explained = causes(known, ruled)
    causing = {cause.name for cause in explained.values()}
    inert = [f for f in known if ruling.is_inert(f, ruled)]
    followers = [f for f in known if f.name in explained]
    acting = [f for f in known if f not in inert and f not in followers]
    model = [f for f in acting if f.section is Section.MODEL]  # a changed template is no library's doing
    stack = [f for f in acting if f not in model]
    first, others = ([f for f in stack if (f.name in causing) is cause] for cause in (True, False))
    return (*model, *_with_alibi((*first, *others), microprobes), *followers, *inert)


def causes(known: Sequence[FactDifference], ruled: Sequence[Ruling]) -> dict[str, FactDifference]:
    """By the name of a fact that follows from another: the first differing fact that explains it."""
    by_name = {f.name: f for f in known}
    same = ruling.is_same(Matter.WEIGHTS, ruled)
    found = ((f.name, next((by_name[n] for n in _explaining(f, same=same) if n in by_name), None)) for f in known)
    return {name: cause for name, cause in found if cause is not None}


def _explaining(fact: FactDifference, *, same: bool) -> tuple[str, ...]:
    """Names that may explain a fact; `same` are the weight files."""
    part = next((part for part in FOLLOWS if has_prefix(fact.name, part)), None)
    return () if part is None or (part in WEIGHED and not same) else FOLLOWS[part]


def _with_alibi(stack: Sequence[FactDifference], microprobes: Microprobes) -> tuple[FactDifference, ...]:
    """No library above torch stands before the first fact beneath it where torch's operators gave other bits."""
    first = next((i for i, f in enumerate(stack) if any(has_prefix(f.name, name) for name in BENEATH)), None)
    if microprobes.word is not ProbeWord.SOMETHING_ELSE or first is None:
        return tuple(stack)
    above = [f for f in stack[:first] if f.name in ABOVE]
    return (*(f for f in stack[:first] if f not in above), stack[first], *above, *stack[first + 1 :])
