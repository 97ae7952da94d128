"""Heads and layers of traces from what was recorded. Knows arrays; nothing of tensors in flight or of models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from driftpin.trace import digest
from driftpin.trace.head import Declaration, Head
from driftpin.trace.layers import Layers, quantise
from driftpin.trace.probe import StopReason
from runner.recording.recorder import LayerRecord, Recording


def dtype_name(dtype: torch.dtype) -> str:
    """For example "bfloat16"."""
    return str(dtype).removeprefix("torch.")


def head(
    recording: Recording,
    *,
    declared: Declaration,
    stop: StopReason,
    prompt_ids: Sequence[int],
    output_ids: Sequence[int],
    greedy: NDArray[np.uint8],
) -> Head:
    """The head of a trace."""
    return Head(
        declared=declared,
        stop=stop,
        dtype=dtype_name(recording.dtype),
        vocab=recording.vocab,
        prompt_ids=np.asarray(prompt_ids, dtype=np.int32),
        output_ids=np.asarray(output_ids, dtype=np.int32),
        greedy=greedy,
        **vars(recording.logits),
    )


def layers(record: LayerRecord, *, first_position: int) -> Layers:
    """The layers of a trace."""
    stats, dtype = record.stats, dtype_name(record.dtype)
    leaves = [digest.leaf(dtype, record.hidden, int(total)) for total in stats.sums.reshape(-1)]
    positions = stats.sums.shape[1]
    experts = np.array(list(record.experts.values()), dtype=np.uint32).reshape(-1, positions)
    return Layers(
        blocks=record.blocks,
        dtype=dtype,
        hidden=record.hidden,
        first_position=first_position,
        root=digest.merkle_root(leaves),
        cells=(stats.sums >> np.uint64(32)).astype(np.uint32),
        rms=quantise(stats.rms),
        absmax=quantise(stats.absmax),
        nonfinite=stats.nonfinite,
        prefill=record.prefill,
        sketch=record.sketch,
        sketch_positions=record.sketch_positions,
        expert_blocks=tuple(record.experts),
        experts=experts,
    )
