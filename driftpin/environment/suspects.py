"""The order of suspects: causes before what follows from them, what the microprobes exclude behind the rest. Pure."""

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
BROUGHT = (  # by a version of torch: its build, and what it depends on
    *(f"library.torch.{part}" for part in ("record", "git", "local", "cuda", "hip")),
    *("library.triton", "library.nvidia"),
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
    inert = [f for f in known if ruling.is_inert(f, ruled)]
    followers = [f for f in known if cause_of(f, known, ruled)]
    acting = [f for f in known if f not in inert and f not in followers]
    model = [f for f in acting if f.section is Section.MODEL]  # a changed template is no library's doing
    stack = [f for f in acting if f not in model]
    causes = [f for f in stack if any(cause_of(g, known, ruled) is f for g in followers)]
    if excluded := _excluded(stack, microprobes):
        causes = [f for f in causes if f not in excluded]
    others = [f for f in stack if f not in causes]
    return (*model, *causes, *others, *followers, *inert)


def cause_of(fact: FactDifference, known: Sequence[FactDifference], ruled: Sequence[Ruling]) -> FactDifference | None:
    """The first differing fact that explains this one."""
    part = next((part for part in FOLLOWS if has_prefix(fact.name, part)), None)
    if part is None or (part in WEIGHED and not ruling.is_same(Matter.WEIGHTS, ruled)):
        return None
    by_name = {f.name: f for f in known}
    return next((by_name[name] for name in FOLLOWS[part] if name in by_name), None)


def _excluded(stack: Sequence[FactDifference], microprobes: Microprobes) -> tuple[FactDifference, ...]:
    """Operators of torch gave other bits, and something changed that could do it: then it was no library above them."""
    beneath = any(has_prefix(f.name, name) for f in stack for name in BENEATH)
    if microprobes.word is not ProbeWord.SOMETHING_ELSE or not beneath:
        return ()
    return tuple(f for f in stack if f.name in ABOVE)
