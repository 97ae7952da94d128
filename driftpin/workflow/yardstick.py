"""Reading the rounding yardstick out of a blessing's perturbed scores, of either arm."""

from __future__ import annotations

from dataclasses import replace

from driftpin.store import Store
from driftpin.trace.probe import Shape
from driftpin.trace.traceset import TraceSet
from driftpin.verdict.floors import Floors, Perturbed, floors_of


def measured_floors(store: Store, traces: TraceSet) -> Floors | None:
    """The rounding yardstick of a blessing's perturbed scores; None where it has none."""
    by_key = traces.by_key()
    other = [e for e in traces.entries if e.key.shape is Shape.PERTURBED and e.head]
    pairs = [(by_key[replace(e.key, shape=Shape.ALONE, repeat=0)], e) for e in other]
    perturbed = [
        Perturbed(
            canary=new.key.canary,
            head=store.traces.head(old),
            other=store.traces.head(new),
            layers=store.traces.layers(old),
            other_layers=store.traces.layers(new),
        )
        for old, new in pairs
    ]
    return floors_of(perturbed, len({e.key.repeat for e in other}))
