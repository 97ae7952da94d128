"""What differs between two environments, likeliest to change the numbers first. Pure: two values in, one value out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from driftpin.environment.environment import Environment, Equality, Facts, Section, equality
from driftpin.environment.fact import Fact, Unknown
from driftpin.environment.layout import comparable


class Change(StrEnum):
    """How one fact differs."""

    ADDED = "added"  # known or unknown after, no such fact before
    REMOVED = "removed"  # a fact before, no such fact after
    CHANGED = "changed"  # known on both sides, other value
    UNDETERMINED = "undetermined"  # unknown on at least one side: neither equal nor different


@dataclass(frozen=True, kw_only=True)
class FactDifference:
    """One fact that is not the same; the absent side of an added or removed one is None."""

    section: Section
    name: str
    kind: Change
    before: Fact
    after: Fact
    rank: int  # 0 changes numbers most likely


# First parts of fact names, likeliest to change numbers first; a section's other facts follow its last entry. What a
# person sets stands before what follows from it: MKL_CBWR before the instruction set that MKL then takes.
LIKELIHOOD: dict[Section, tuple[str, ...]] = {
    Section.MODEL: (
        *("weights", "parameters", "config", "sampling.in_force", "sampling.mode", "template", "tokenizer"),
        *("generation", "sampling", "keys"),
    ),
    Section.STACK: (
        *("dtype", "attention.implementation", "attention", "experts", "cache", "compile"),
        *("variable.ONEDNN_MAX_CPU_ISA", "variable.ONEDNN_DEFAULT_FPMATH_MODE", "variable.ATEN_CPU_CAPABILITY"),
        *("variable.MKL_CBWR", "variable.MKL_ENABLE_INSTRUCTIONS", "variable.NVIDIA_TF32_OVERRIDE"),
        *("variable.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "variable.CUBLAS_WORKSPACE_CONFIG", "flag", "device", "isa"),
        *("library.torch", "library.triton", "library.nvidia", "library.cuda", "library.transformers", "driver"),
        *("object", "flag.threads", "library", "variable", "image"),
    ),
    Section.BEHAVIOUR: (),
}
CAME_OR_WENT = ("flag", "experts")  # what one version has and another lacks was not set by anybody
STRIDE = 100  # ranks per section
UNDETERMINED_LAST = 1000  # what may be equal stands behind everything that is not


def difference(a: Environment, b: Environment) -> tuple[FactDifference, ...]:
    """Facts that differ from `a` to `b`, ordered by (rank, name): model, stack, behaviour, then the undetermined."""
    a, b = comparable(a, b)
    found = [entry for section in Section for entry in _section(section, a.section(section), b.section(section))]
    return tuple(sorted(found, key=lambda entry: (entry.rank, entry.name)))


def equalities(a: Environment, b: Environment) -> dict[Section, Equality]:
    """Whether each section agrees."""
    a, b = comparable(a, b)
    return {section: equality(a.section(section), b.section(section)) for section in Section}


def rank(section: Section, name: str) -> int:
    """Place of a fact in the order of likelihood; smaller is likelier."""
    prefixes = LIKELIHOOD[section]
    matching = [(len(prefix), i) for i, prefix in enumerate(prefixes) if has_prefix(name, prefix)]
    place = max(matching)[1] if matching else len(prefixes)  # the longest prefix knows best
    return list(Section).index(section) * STRIDE + place


def has_prefix(name: str, prefix: str) -> bool:
    """Whether a fact is that one, or a part of it."""
    return name == prefix or name.startswith((f"{prefix}.", f"{prefix}-"))  # nvidia-cublas is one of nvidia's


def _section(section: Section, a: Facts, b: Facts) -> Iterator[FactDifference]:
    for name in a.keys() | b.keys():
        kind = _kind(a, b, name)
        if kind is not None:
            place = _place(section, a, b, name)
            yield FactDifference(
                section=section, name=name, kind=kind, before=a.get(name), after=b.get(name), rank=place
            )


def _place(section: Section, a: Facts, b: Facts, name: str) -> int:
    if _kind(a, b, name) is Change.UNDETERMINED:
        return rank(section, name) + UNDETERMINED_LAST
    lacking = a.get(name) is None or b.get(name) is None
    if lacking and any(has_prefix(name, prefix) for prefix in CAME_OR_WENT):
        return list(Section).index(section) * STRIDE + len(LIKELIHOOD[section])
    return rank(section, name)


def _kind(a: Facts, b: Facts, name: str) -> Change | None:
    if name not in a:
        return Change.ADDED
    if name not in b:
        return Change.REMOVED
    if isinstance(a[name], Unknown) or isinstance(b[name], Unknown):
        return Change.UNDETERMINED
    return None if a[name] == b[name] else Change.CHANGED
