"""Runs one prompt through a loaded model and records it: greedy generation, or one teacher-forced forward.

Knows a model, token ids and shapes. Nothing of suites, recipes, files or text.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessorList

from driftpin.trace.head import TOP_K, Declaration, Head
from driftpin.trace.layers import Layers
from driftpin.trace.probe import Arm, Greedy, Probe, Shape, StopReason
from runner.engines.batching import Batch, Vocabulary, build
from runner.engines.caches import cache_arguments
from runner.engines.compiling import uncompiled
from runner.engines.perturbation import DECLARED, perturbation
from runner.engines.remembered import NOTHING, Remembered
from runner.recording import assemble
from runner.recording.recorder import DecodeRecorder, Recording, ScoreRecorder

KEEP_NAMES = ("logits_to_keep", "num_logits_to_keep")  # how many logits a forward computes; the second is 4.48's


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What one run of one prompt gave."""

    head: Head
    layers: Layers | None
    layers_absent: str | None

    @property
    def output_ids(self) -> list[int]:
        """Emitted or given ids."""
        return [int(i) for i in self.head.output_ids]


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """A loaded model, ready for prompts."""

    model: Any  # a PreTrainedModel that can generate
    arm: Arm
    vocabulary: Vocabulary
    ends: frozenset[int]  # ids that end a generation
    forcing: bool = False  # some processor may force tokens
    static_length: int | None = None  # of the key-value cache in a decode; None for the library's own
    remembered: Remembered = NOTHING  # what the model keeps of earlier sequences, put back before each
    hook_layers: bool = True  # off for compiled or graph-captured models

    def batch(self, ids: Sequence[int], shape: Shape) -> Batch:
        """The batch on the model's device."""
        made = build(ids, shape, self.vocabulary)
        return Batch(ids=made.ids.to(self.model.device), mask=made.mask.to(self.model.device), declared=made.declared)

    @torch.inference_mode()
    def generate(self, batch: Batch, arguments: Mapping[str, Any], **more: Any) -> Any:
        """The model's ordinary `generate`, compilation off; what it returns."""
        self.remembered.forget()
        cache = cache_arguments(self.model, self.static_length, batch.rows)
        given = {**uncompiled(self.model), **arguments, **cache, **more}
        return self.model.generate(input_ids=batch.ids, attention_mask=batch.mask, **given)

    @torch.inference_mode()
    def forward(self, batch: Batch, scored: int) -> torch.Tensor:
        """One forward without a cache: raw logits of the last `scored` positions (or more), [rows, n, vocab]."""
        self.remembered.forget()
        takes = inspect.signature(self.model.forward).parameters
        keep = {name: scored for name in KEEP_NAMES if name in takes}
        positions = {"position_ids": batch.positions} if "position_ids" in takes else {}
        output = self.model(input_ids=batch.ids, attention_mask=batch.mask, use_cache=False, **keep, **positions)
        logits: torch.Tensor = output.logits
        return logits


def decode(bench: Bench, ids: Sequence[int], shape: Shape, arguments: Mapping[str, Any]) -> Run:
    """Greedy generation; `arguments` of `generate` must hold `max_new_tokens`."""
    batch, limit = bench.batch(ids, shape), int(arguments["max_new_tokens"])
    recorder = DecodeRecorder(
        bench.model,
        prompt=len(ids),
        width=batch.width,
        batch=batch.rows,
        limit=limit,
        forcing=bench.forcing,
        layers=bench.hook_layers,
    )
    with torch.inference_mode(), recorder:
        made = bench.generate(batch, arguments, logits_processor=LogitsProcessorList([recorder.witness]))
        output_ids = cut(emitted(made)[0, batch.width :], bench.ends)
        recording = recorder.finish(output_ids)
        greedy = recorder.witness.verdicts(output_ids)
    ended = int(output_ids[-1]) in bench.ends
    head = assemble.head(
        recording,
        declared=_declared(bench, Probe.DECODE, shape, batch, recording, limit),
        stop=StopReason.END if ended else StopReason.LENGTH,
        prompt_ids=ids,
        output_ids=output_ids.tolist(),
        greedy=greedy,
    )
    return _run(head, recording, first_position=len(ids) - 1)


class Scoring:
    """One score in the making: prompt and given outputs but the last; position i predicts `output_ids[i]`.

    `Shape.PERTURBED` runs alone with embeddings perturbed under `seed`. Make it while the model's blocks are in place.
    """

    def __init__(
        self, bench: Bench, ids: Sequence[int], shape: Shape, output_ids: Sequence[int], limit: int, seed: int = 0
    ) -> None:
        self._bench, self._ids, self._shape, self._output_ids = bench, ids, shape, output_ids
        self._limit, self._seed = limit, seed
        given = [*ids, *output_ids[:-1]]
        self._batch = bench.batch(given, Shape.ALONE if shape is Shape.PERTURBED else shape)
        with torch.inference_mode():
            targets = torch.tensor(list(output_ids), dtype=torch.int64, device=self._batch.ids.device)
            self.recorder = ScoreRecorder(
                bench.model, length=len(given), batch=self._batch.rows, output_ids=targets, layers=bench.hook_layers
            )

    def forward(self) -> None:
        """The model's ordinary forward; it records only within `recorder`."""
        model, perturbed = self._bench.model, self._shape is Shape.PERTURBED
        with torch.inference_mode(), perturbation(model, self._seed) if perturbed else nullcontext():
            self._bench.forward(self._batch, len(self._output_ids))

    def run(self) -> Run:
        """One forward with everything recorded."""
        with torch.inference_mode(), self.recorder:
            self.forward()
            return self.finish()

    def finish(self) -> Run:
        """What was recorded."""
        recording = self.recorder.finish()
        head = assemble.head(
            recording,
            declared=_declared(self._bench, Probe.SCORE, self._shape, self._batch, recording, self._limit),
            stop=StopReason.FORCED,
            prompt_ids=self._ids,
            output_ids=self._output_ids,
            greedy=np.full(len(self._output_ids), Greedy.FORCED, dtype=np.uint8),
        )
        return _run(head, recording, first_position=0)


def score(bench: Bench, ids: Sequence[int], shape: Shape, output_ids: Sequence[int], limit: int, seed: int = 0) -> Run:
    """One forward with everything recorded; arguments as of `Scoring`."""
    return Scoring(bench, ids, shape, output_ids, limit, seed).run()


def emitted(made: Any) -> torch.Tensor:
    """Sequences [rows, n] of what `generate` returned, in either of its forms."""
    sequences: torch.Tensor = made if isinstance(made, torch.Tensor) else made.sequences
    return sequences


def cut(tokens: torch.Tensor, ends: frozenset[int]) -> torch.Tensor:
    """The tokens [n] of one row up to its first end token; what stands behind it is padding of the batch."""
    found = next((i for i, token in enumerate(tokens.tolist()) if token in ends), len(tokens) - 1)
    return tokens[: found + 1]


def _declared(bench: Bench, probe: Probe, shape: Shape, batch: Batch, recording: Recording, limit: int) -> Declaration:
    length = f":{bench.static_length}" if bench.static_length and probe is Probe.DECODE else ""
    return Declaration(
        probe=probe,
        arm=bench.arm,
        shape=shape,
        batch=f"{batch.declared},{DECLARED}" if shape is Shape.PERTURBED else batch.declared,
        cache=recording.cache + length,
        token_limit=limit,
        k=min(TOP_K, recording.vocab),
    )


def _run(head: Head, recording: Recording, first_position: int) -> Run:
    record = recording.layers
    layers = None if record is None else assemble.layers(record, first_position=first_position)
    return Run(head=head, layers=layers, layers_absent=recording.layers_absent)
