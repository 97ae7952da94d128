"""The size of a movement against the floors, in one value. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from driftpin.comparison.facts import Comparison, Divergence
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.verdict.floors import SHIFT, Floors
from driftpin.verdict.outcome import tie_limit


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How far the numbers moved: mean |Δ log-prob| in nats over canaries, identical ones counting as zero.

    `yardstick` is the same mean under rounding alone; a canary is shifted above `limit` times its yardstick.
    """

    probe: Probe  # whose numbers: scores, or decodes where only they moved or there is no score
    mean: float
    canaries: int
    yardstick: float | None  # None: the baseline has none
    limit: float = SHIFT
    worst: str | None = None  # the canary that moved most against its own yardstick
    worst_mean: float = 0.0
    worst_yardstick: float | None = None
    repeat_floor: float | None = None  # the same mean between repeats at blessing; usually zero
    largest_movement: float | None = None  # the largest D of all first divergences, in logits
    tie_limit: float | None = None  # F at that divergence

    @property
    def times(self) -> float | None:
        """The mean in yardsticks; None without a yardstick or with one of zero."""
        return self.mean / self.yardstick if self.yardstick else None


def shift_of(comparison: Comparison, floors: Floors | None, repeat_floor: float | None = None) -> Shift | None:
    """Of the scores; of the decodes where only they moved or there is no score. None where nothing was compared."""
    probes = {probe: sizes for probe in (Probe.SCORE, Probe.DECODE) if (sizes := _sizes(comparison, probe))}
    probe = next((p for p, sizes in probes.items() if any(sizes.values())), next(iter(probes), None))
    return None if probe is None else _shift(comparison, probe, probes[probe], floors, repeat_floor)


def _sizes(comparison: Comparison, probe: Probe) -> dict[str, float]:
    """Mean |Δ log-prob| by canary, alone, first repeat."""
    sizes = {key.canary: 0.0 for key in comparison.identical if _counts(key, probe)}
    changed = ((t.key.canary, t.movement) for t in comparison.changed if _counts(t.key, probe))
    return sizes | {canary: moved.mean_abs_logprob for canary, moved in changed if moved}


def _counts(key: TraceKey, probe: Probe) -> bool:
    return key.probe is probe and key.shape is Shape.ALONE and key.repeat == 0


def _shift(
    comparison: Comparison, probe: Probe, sizes: dict[str, float], floors: Floors | None, repeat_floor: float | None
) -> Shift:
    worst = max(sizes, key=lambda canary: sizes[canary] / (_yardstick(floors, canary) or 1.0))
    widest = _widest(comparison)
    return Shift(
        probe=probe,
        mean=sum(sizes.values()) / len(sizes),
        canaries=len(sizes),
        yardstick=None if floors is None else floors.logprob,
        worst=worst if sizes[worst] else None,
        worst_mean=sizes[worst],
        worst_yardstick=_yardstick(floors, worst),
        repeat_floor=repeat_floor,
        largest_movement=None if widest is None else widest.movement,
        tie_limit=None if widest is None or floors is None else tie_limit(widest, floors),
    )


def _yardstick(floors: Floors | None, canary: str) -> float | None:
    return None if floors is None else floors.shift_limit(canary) / SHIFT


def _widest(comparison: Comparison) -> Divergence | None:
    known = [t.divergence for t in comparison.changed if t.divergence and t.divergence.movement is not None]
    return max(known, key=lambda at: abs(at.movement or 0.0), default=None)
