"""The product's worker with one change made in its process: `python -m benchmarks.planted.worker REPLAY_ID`.

Which change stands in the variable DRIFTPIN_PLANTED. Only the native arm has it.
"""

from __future__ import annotations

import os
import sys

from benchmarks.planted.change import VARIABLE
from benchmarks.planted.in_process import PATCHES
from driftpin.trace.probe import Arm
from runner import worker
from runner.engines.transformers import TransformersEngine


def install(name: str) -> None:
    """Every model that this process loads in the native arm gets the change."""
    load = TransformersEngine.load

    def changed(self: TransformersEngine) -> None:
        load(self)
        if self._arm is Arm.NATIVE and self._loaded is not None:
            PATCHES[name](self._loaded.model)

    TransformersEngine.load = changed  # type: ignore[method-assign]


if __name__ == "__main__":
    install(os.environ.pop(VARIABLE))
    sys.exit(worker.main(sys.argv[1:]))
