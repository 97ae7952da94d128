"""The rounding yardstick as numbers: how far rounding alone moves this model on these canaries. Pure.

Measured at blessing, on the baseline's own device, by scoring the baseline's tokens with perturbed embeddings. It is
part of the baseline and never changes; a candidate never sets its own threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from driftpin.canonical import known_parts
from driftpin.comparison.deviation import deviation
from driftpin.comparison.routing import routing
from driftpin.comparison.tokens import movement, top_moved, top_pair_movements
from driftpin.trace.head import Head
from driftpin.trace.layers import Layers

QUANTILE = 0.999  # of pair movement: what a tie may move by
SHIFT = 2.0  # mean |Δ log-prob| above this many yardsticks is a shift
FAR = 2.0  # D above this many F, or a distance above this many baseline distances: rounding alone does not reach it
STANDS_OUT = 3.0  # a block above this many times its own yardstick is where a change enters


@dataclass(frozen=True, kw_only=True)
class Floors:
    """F and the yardsticks. Movements in logits, log-probabilities in nats, deviations relative."""

    pair: float  # the 99.9 % quantile of pair movement over canaries, positions and seeds
    logprob: float  # mean |Δ log-prob| over canaries and seeds
    by_canary: Mapping[str, float]  # the same per canary, the largest of its seeds
    blocks: Mapping[str, float]  # relative deviation by module path, the largest over canaries and seeds
    samples: int  # pair movements that the quantile was taken of
    seeds: int
    routers: Mapping[str, float] = field(default_factory=dict)  # share of positions with other experts, as `blocks`
    parting: Mapping[str, float] = field(default_factory=dict)  # by canary: share of seeds that would part its text
    # By canary the output position at which the first seed parts its text; absent where none does. None: not measured.
    earliest: Mapping[str, int] | None = None
    far_parting: float | None = None  # share of canaries and seeds that part by more than FAR times F
    beyond: float | None = None  # share of their texts' beginnings whose mean is above the shift limit
    beyond_yardstick: float | None = (
        None  # the same above the yardstick: what a movement SHIFT times as large takes beyond
    )

    def to_json(self) -> dict[str, Any]:
        """As kept in a bundle."""
        return {
            "pair": self.pair,
            "logprob": self.logprob,
            "by_canary": dict(self.by_canary),
            "blocks": dict(self.blocks),
            "samples": self.samples,
            "seeds": self.seeds,
            "routers": dict(self.routers),
            "parting": dict(self.parting),
            "earliest": None if self.earliest is None else dict(self.earliest),
            "far_parting": self.far_parting,
            "beyond": self.beyond,
            "beyond_yardstick": self.beyond_yardstick,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Floors | None:
        """From a bundle; None for one that was blessed without floors. What a later version measures is left out."""
        return None if value is None else cls(**known_parts(cls, value))

    def shift_limit(self, canary: str) -> float:
        """What mean |Δ log-prob| of a canary may reach: twice the larger of its own yardstick and the common one."""
        return SHIFT * max(self.logprob, self.by_canary.get(canary, 0.0))

    def at_least(self, repeat: RepeatFloor | None) -> Floors:
        """The same, nowhere below what the target's own repeats move by; when its texts part then nobody measured."""
        if repeat is None or not repeat.moved:
            return self
        canaries = {**dict.fromkeys(repeat.by_canary, 0.0), **self.by_canary}
        return replace(
            self,
            pair=max(self.pair, repeat.pair),
            earliest=None if repeat.tokens_differ else self.earliest,
            logprob=max(self.logprob, repeat.logprob),
            by_canary={c: max(size, repeat.by_canary.get(c, 0.0)) for c, size in canaries.items()},
        )


@dataclass(frozen=True, kw_only=True)
class RepeatFloor:
    """How far the target moved by itself at blessing: between repeats, and from alone to each other declared shape.

    All zero on a target that repeats itself; shapes move wherever kernels follow the batch.
    """

    repeats: int
    pair: float = 0.0  # the largest pair movement between two repeats of one execution, in logits
    logprob: float = 0.0  # mean over canaries of the largest mean |Δ log-prob| between repeats, in nats
    by_canary: Mapping[str, float] = field(default_factory=dict)  # canaries that moved
    tokens_differ: int = 0  # executions whose repeats differ in tokens
    shapes: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict
    )  # by shape: executions, moved, parted, logprob

    @property
    def moved(self) -> bool:
        """Whether repeats differ at all."""
        return bool(self.tokens_differ or self.pair or self.by_canary)

    def to_json(self) -> dict[str, Any]:
        """As kept in a bundle."""
        return {
            **asdict(self),
            "by_canary": dict(self.by_canary),
            "shapes": {n: dict(s) for n, s in self.shapes.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> RepeatFloor | None:
        """From a bundle; None for one that was blessed before repeats were measured; later parts are left out."""
        return None if value is None else cls(**known_parts(cls, value))


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbed:
    """One canary's score and one of its perturbed repeats."""

    canary: str
    head: Head
    other: Head
    layers: Layers | None
    other_layers: Layers | None


def floors_of(pairs: Sequence[Perturbed], seeds: int) -> Floors | None:
    """The yardstick over all pairs; None where nothing was perturbed or nothing finite came out."""
    moved = [(p.canary, m.mean_abs_logprob) for p in pairs if (m := movement(p.head, p.other)) is not None]
    jumps = [top_pair_movements(p.head, p.other, len(p.head.digest)) for p in pairs]
    pooled = np.concatenate(jumps) if jumps else np.zeros(0)
    if not moved or not len(pooled) or not np.isfinite([size for _, size in moved]).all():
        return None
    by_canary: dict[str, float] = {}
    for canary, size in moved:
        by_canary[canary] = max(size, by_canary.get(canary, 0.0))
    found = Floors(
        pair=float(np.quantile(pooled, QUANTILE, method="higher")),
        logprob=float(np.mean([size for _, size in moved])),
        by_canary=by_canary,
        blocks=_blocks(pairs),
        samples=len(pooled),
        seeds=seeds,
        routers=_routers(pairs),
        parting=_parting(pairs),
        earliest=_earliest(pairs),
    )
    return replace(
        found,
        far_parting=_far_parting(pairs, found.pair),
        beyond=_beyond(pairs, found, 1.0),
        beyond_yardstick=_beyond(pairs, found, 1 / SHIFT),
    )


def _blocks(pairs: Sequence[Perturbed]) -> dict[str, float]:
    largest: dict[str, float] = {}
    for pair in pairs:
        if pair.layers is None or pair.other_layers is None:
            continue
        for block, ratio in deviation(pair.layers, pair.other_layers):
            largest[block] = max(ratio, largest.get(block, 0.0))
    return {block: ratio for block, ratio in largest.items() if np.isfinite(ratio)}


def _routers(pairs: Sequence[Perturbed]) -> dict[str, float]:
    largest: dict[str, float] = {}
    for pair in pairs:
        if pair.layers is None or pair.other_layers is None:
            continue
        largest = {**dict.fromkeys(pair.layers.expert_blocks, 0.0), **largest}
        if (found := routing(pair.layers, pair.other_layers)) is not None:
            for router in found.changed:
                largest[router.module] = max(router.count / found.positions, largest[router.module])
    return largest


def _parting(pairs: Sequence[Perturbed]) -> dict[str, float]:
    seeds: dict[str, list[bool]] = {}
    for pair in pairs:
        seeds.setdefault(pair.canary, []).append(top_moved(pair.head, pair.other) is not None)
    return {canary: sum(parted) / len(parted) for canary, parted in seeds.items()}


def _earliest(pairs: Sequence[Perturbed]) -> dict[str, int]:
    first: dict[str, int] = {}
    for pair in pairs:
        if (at := top_moved(pair.head, pair.other)) is not None:
            first[pair.canary] = min(at.position, first.get(pair.canary, at.position))
    return first


def _far_parting(pairs: Sequence[Perturbed], limit: float) -> float:
    """Other experts behind a router's tie do that in a mixture; in a dense model nothing does."""
    moved = [top_moved(pair.head, pair.other) for pair in pairs]
    return sum(at is not None and is_far(at.movement, max(limit, at.ulp or 0.0)) for at in moved) / len(moved)


def _beyond(pairs: Sequence[Perturbed], floors: Floors, of_limit: float) -> float:
    """A decode is compared up to its divergence, so every beginning of a text stands for one that parted there."""
    shares = []
    for pair in pairs:
        moved = np.abs(pair.head.logprob.astype(np.float64) - pair.other.logprob.astype(np.float64))
        means = np.cumsum(moved) / np.arange(1, len(moved) + 1)
        shares.append(float((means > of_limit * floors.shift_limit(pair.canary)).mean()) if len(means) else 0.0)
    return float(np.mean(shares))


def is_far(moved: float | None, limit: float) -> bool:
    """A pair that moved by more than FAR times F (`limit`), or to a token that was not even kept."""
    return moved is None or abs(moved) > FAR * limit
