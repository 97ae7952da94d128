"""Measuring the repeat floor: how far a target moves by itself, from its blessing's own traces. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from driftpin.comparison.tokens import first_difference, identical, movement
from driftpin.trace.head import Head
from driftpin.trace.probe import Shape, TraceKey
from driftpin.verdict.floors import RepeatFloor


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """One execution and what it is held against: its own first repeat, or the same canary alone."""

    key: TraceKey
    first: Head
    other: Head


def pairs_to_ask(keys: Sequence[TraceKey], digests: Mapping[TraceKey, str]) -> list[tuple[TraceKey, TraceKey]]:
    """(first, other) keys whose heads differ by content: later repeats, and first repeats in another shape."""
    found = [(_reference(key), key) for key in keys if key.shape is not Shape.PERTURBED]
    return [(a, b) for a, b in found if a != b and a in digests and b in digests and digests[a] != digests[b]]


def _reference(key: TraceKey) -> TraceKey:
    return replace(key, repeat=0) if key.repeat else replace(key, shape=Shape.ALONE)


def repeat_floor(pairs: Sequence[Pair], keys: Sequence[TraceKey], repeats: int) -> RepeatFloor:
    """The floor over all pairs that differ; `keys` are all executions, for the means."""
    later = [pair for pair in pairs if pair.key.repeat]
    canaries = {key.canary for key in keys}
    by_canary: dict[str, float] = {}
    widest = 0.0
    for pair in later:
        moved = movement(pair.first, pair.other)
        if moved is None:
            continue
        by_canary[pair.key.canary] = max(moved.mean_abs_logprob, by_canary.get(pair.key.canary, 0.0))
        widest = max(widest, moved.max_pair or 0.0)
    return RepeatFloor(
        repeats=repeats,
        pair=widest,
        logprob=sum(by_canary.values()) / len(canaries) if canaries else 0.0,
        by_canary=by_canary,
        tokens_differ=sum(not _same_tokens(pair) for pair in later),
        shapes=_shapes([pair for pair in pairs if not pair.key.repeat], keys),
    )


def _same_tokens(pair: Pair) -> bool:
    return first_difference(pair.first.output_ids, pair.other.output_ids) is None


def _shapes(pairs: Sequence[Pair], keys: Sequence[TraceKey]) -> dict[str, dict[str, float]]:
    """By declared shape other than alone: how many executions, how many moved, how many parted, and how far."""
    shapes = sorted({k.shape for k in keys if k.shape not in (Shape.ALONE, Shape.PERTURBED)})
    return {shape.value: _shape([p for p in pairs if p.key.shape is shape], _count(keys, shape)) for shape in shapes}


def _count(keys: Sequence[TraceKey], shape: Shape) -> int:
    return sum(1 for key in keys if key.shape is shape and key.repeat == 0)


def _shape(pairs: Sequence[Pair], executions: int) -> dict[str, float]:
    sizes = [m.mean_abs_logprob for p in pairs if (m := movement(p.first, p.other)) is not None]
    return {
        "executions": executions,
        "moved": sum(not identical(p.first, p.other) for p in pairs),
        "parted": sum(not _same_tokens(p) for p in pairs),
        "logprob": sum(sizes) / executions if executions else 0.0,
    }
