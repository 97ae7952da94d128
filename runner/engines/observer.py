"""The observer check: does recording change what the model computes? Compares runs with and without it, bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import LogitsProcessorList

from driftpin.trace.probe import Shape
from runner.engines.bench import Bench
from runner.recording.recorder import DecodeRecorder, ScoreRecorder


def observer_check(bench: Bench, ids: Sequence[int], arguments: Mapping[str, Any]) -> str | None:
    """None when tokens and logits are bit-equal with recording on and off, in both probes; else what differed."""
    plain, recorded = _generate(bench, ids, arguments, watch=False), _generate(bench, ids, arguments, watch=True)
    tokens, watched = plain.sequences[0, len(ids) :], recorded.sequences[0, len(ids) :]
    for step, (a, b) in enumerate(zip(plain.logits, recorded.logits, strict=False)):
        if not same_bits(a, b):
            return f"Recording changed the logits of decode step {step}."
    if not torch.equal(tokens, watched):
        return f"Recording changed the tokens: {len(tokens)} without it, {len(watched)} with it."
    return observe_score(bench, ids, tokens)


def observe_score(bench: Bench, ids: Sequence[int], tokens: torch.Tensor) -> str | None:
    """The same of a score alone, forced on int64 [N] tokens."""
    if not same_bits(_forward(bench, ids, tokens, watch=False), _forward(bench, ids, tokens, watch=True)):
        return "Recording changed the logits of a score."
    return None


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal shape, dtype and bits, any NaN counting as any other; minus zero differs from zero."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = (a == b) & (a.signbit() == b.signbit())
    return bool((same | (a.isnan() & b.isnan())).all())


def _generate(bench: Bench, ids: Sequence[int], arguments: Mapping[str, Any], *, watch: bool) -> Any:
    batch = bench.batch(ids, Shape.ALONE)
    asked = {**arguments, "output_logits": True, "return_dict_in_generate": True}
    if not watch:
        return bench.generate(batch, asked)
    limit = int(arguments["max_new_tokens"])
    with torch.inference_mode(), _decode_recorder(bench, len(ids), limit) as recorder:
        return bench.generate(batch, asked, logits_processor=LogitsProcessorList([recorder.witness]))


def _decode_recorder(bench: Bench, prompt: int, limit: int) -> DecodeRecorder:
    return DecodeRecorder(
        bench.model,
        prompt=prompt,
        width=prompt,
        batch=1,
        limit=limit,
        forcing=bench.forcing,
        layers=bench.hook_layers,
    )


def _forward(bench: Bench, ids: Sequence[int], tokens: torch.Tensor, *, watch: bool) -> torch.Tensor:
    given = [*ids, *tokens[:-1].tolist()]
    batch = bench.batch(given, Shape.ALONE)
    if not watch:
        return bench.forward(batch, len(tokens))
    recorder = ScoreRecorder(bench.model, length=len(given), batch=1, output_ids=tokens, layers=bench.hook_layers)
    with torch.inference_mode(), recorder:
        return bench.forward(batch, len(tokens))
