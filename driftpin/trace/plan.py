"""What one replay is to execute. Knows nothing of how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driftpin.trace.probe import Arm, Probe, Shape

BASELINE = "baseline"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Executions per canary: every probe in every shape, `repeats` times, in suite order within one process.

    `score_on` is the trace set (digest) whose decode outputs a score is forced on; `BASELINE` stands for the one that
    is current for the device class when the replay starts, and None for this replay's own.
    """

    probes: tuple[Probe, ...] = (Probe.DECODE, Probe.SCORE)
    shapes: tuple[Shape, ...] = (Shape.ALONE,)
    repeats: int = 1
    arm: Arm = Arm.NATIVE
    score_on: str | None = None
    observer_check: bool = False  # prove that recording does not change the logits
    verify_weights: bool = False  # read weight files in full instead of trusting the cached hash
    only: tuple[str, ...] = ()  # canary ids; empty means all
    yardstick: int = 0  # seeds of the rounding yardstick, scored behind everything else

    def to_json(self) -> dict[str, Any]:
        """As stored with a replay."""
        return {
            "probes": list(self.probes),
            "shapes": list(self.shapes),
            "repeats": self.repeats,
            "arm": self.arm,
            "score_on": self.score_on,
            "observer_check": self.observer_check,
            "verify_weights": self.verify_weights,
            "only": list(self.only),
            "yardstick": self.yardstick,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """As read from the store."""
        return cls(
            **{
                **value,
                "probes": tuple(Probe(p) for p in value["probes"]),
                "shapes": tuple(Shape(s) for s in value["shapes"]),
                "arm": Arm(value["arm"]),
                "only": tuple(value["only"]),
            }
        )
