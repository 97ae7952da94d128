"""The reference arm of the pair: block by block has the bits of the whole model, and reads every tensor once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from pair_suite import LONG, SHORT, engine
from safetensors.torch import load_file

from driftpin.trace.probe import Arm, Probe, Shape, TraceKey
from driftpin.trace.traceset import Trace
from runner.checkpoint import Checkpoint
from runner.engines.protocol import ScoreRequest


def scored(folder: Path, way: str) -> list[Trace]:
    made = engine(folder, Arm.REFERENCE, options={"reference": way})
    made.warm_up()
    asked = [
        ScoreRequest(
            key=TraceKey(canary=canary.id, probe=Probe.SCORE, shape=shape),
            canary=canary,
            rendered=made.render(canary, None),
            output_ids=(5, 9, 17, 33),
        )
        for shape in Shape
        for canary in (SHORT, LONG)
    ]
    made.foresee(asked)
    return [made.score(one.key, one.canary, one.rendered, one.output_ids) for one in asked]


@pytest.mark.parametrize("kind", ["llama_folder", "mixture_folder"])
def test_both_ways_have_the_same_bits(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = request.getfixturevalue(kind)
    whole = scored(folder, "whole")
    read: Counter[str] = Counter()
    plain = Checkpoint.read

    def counting(self: Checkpoint, name: str) -> torch.Tensor:
        read[name] += 1
        return plain(self, name)

    monkeypatch.setattr(Checkpoint, "read", counting)
    blocks = scored(folder, "block_by_block")
    assert [trace.entry() for trace in blocks] == [trace.entry() for trace in whole]
    assert all(trace.layers is not None and trace.head.dtype == "float32" for trace in blocks)
    assert read == Counter(dict.fromkeys(load_file(folder / "model.safetensors"), 1))
