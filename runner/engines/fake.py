"""The fake engine: a byte tokenizer and an arithmetic model that run the whole pipeline in milliseconds.

It is product code: tests and `driftpin doctor` use it. Its `options.faults` (`runner.engines.fake_faults`) make it fail
in the ways in which real targets fail. Its native arm is the exact model with a rounding of its own on the logits, its
reference arm the exact model. It never imports torch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftpin.canonical import digest_of, hex64
from driftpin.environment.environment import Environment
from driftpin.errors import CannotMeasureError, ModelError, SuiteError
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, Suite, input_digest
from driftpin.trace import digest
from driftpin.trace.head import TOP_K, Declaration, Head
from driftpin.trace.layers import Layers, quantise
from driftpin.trace.probe import Arm, Greedy, Probe, Shape, StopReason, TraceKey
from driftpin.trace.sketch import POSITIONS_32BIT, SKETCH_K, positions, signs
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Trace
from runner.engines.fake_faults import BLOCKS, VOCAB, Faults
from runner.engines.fake_model import END, FINER, GRID, HIDDEN, FakeModel, natively, perturbed
from runner.engines.protocol import Rendered, ScoreRequest, Told, untold
from runner.engines.reference import no_decode
from runner.recording.rows import head_arrays

EXIT_CODE = 70  # of the fault `exit`


class FakeEngine:
    """An `Engine` without a model; `ConfigError` for faults that it does not know."""

    def __init__(self, recipe: Recipe, arm: Arm, suite: Suite) -> None:
        self.recipe, self.arm, self.suite = recipe, arm, suite
        self.faults = Faults.of(recipe.options)
        self.executions = 0

    def load(self) -> None:
        """Build the model; the fault `missing_keys` is refused like a real file with missing weights."""
        if keys := self.faults.missing_keys:
            raise ModelError(f"Model {self.recipe.model!r} lacks weights: {', '.join(keys)}.", remedy="Restore them.")
        self.model = FakeModel(faults=self.faults)

    def environment(self, *, verify_weights: bool = False) -> Environment:
        """Facts that follow from the recipe alone, so that equal recipes have equal environments."""
        logits = self.model.forward(range(8))[1]
        seen = self.faults.model_copy(update={"native_noise": None})  # a defect of a kernel that is not probed
        probe = natively(logits, 0, seen) if self.arm is Arm.NATIVE else logits
        sums = [hex64(int(n)) for n in digest.row_sums(probe)]
        weights = digest_of([[str(v) for v in gate] for gate in self.model.gates])
        sections: dict[str, dict[str, Any]] = {
            "model": {"weights.fake": weights, "parameters.dtypes": {self.recipe.dtype: BLOCKS}},
            "stack": {"library.fake": "1", "device.class": "fake"},
            "behaviour": {"forward.m8": digest_of(sums)},
            "context": {},
        }
        for section, facts in self.faults.facts.items():
            sections[section] |= facts
        return Environment(**sections)

    def render(self, canary: Canary, clock: str | None) -> Rendered:
        """Roles and contents on lines of their own, as UTF-8 bytes."""
        if canary.prompt is not None:
            text = canary.prompt
        else:
            text = "".join(f"<{m.role}>{m.content}\n" for m in canary.messages) + "<assistant>"
        if self.faults.tokenizer:
            text = "".join(f"{c}\x01" if c.isdigit() else c for c in text)
        ids = tuple(text.encode("utf-8", "surrogatepass"))
        if not ids:
            raise SuiteError(f"Canary {canary.id!r} renders to nothing.", remedy="Give it a prompt.")
        return Rendered(text=text, ids=ids)

    def warm_up(self) -> None:
        """One short forward whose result is thrown away."""
        self.model.forward(range(4))

    def observer_check(self, canary: Canary, rendered: Rendered) -> str | None:
        """Nothing observes here, so nothing can disturb."""
        return None

    def decode(self, key: TraceKey, canary: Canary, rendered: Rendered) -> Trace:
        """Greedy generation, one forward per token; refused in the reference arm."""
        if self.arm is Arm.REFERENCE:
            raise no_decode()
        self._before(canary)
        ids, rows, greedy = list(rendered.ids), [], []
        for step in range(canary.settings.max_new_tokens):
            row = self._seen(ids, len(ids) - 1)[0]
            rows.append(row)
            chosen, proven = self._choose(row, step)
            greedy.append(proven)
            ids.append(chosen)
            if chosen == END:
                break
        output = np.asarray(ids[len(rendered.ids) :], dtype=np.int32)
        stop = StopReason.END if ids[-1] == END else StopReason.LENGTH
        return self._trace(key, canary, rendered, output, np.stack(rows), np.asarray(greedy, np.uint8), stop)

    def foresee(self, requests: Sequence[ScoreRequest], told: Told = untold) -> None:
        """Every score is a forward of its own."""

    def score(self, key: TraceKey, canary: Canary, rendered: Rendered, output_ids: Sequence[int]) -> Trace:
        """One forward over prompt and given outputs."""
        self._before(canary)
        ids = [*rendered.ids, *output_ids[:-1]]
        rows = self._seen(ids, len(rendered.ids) - 1)
        if key.shape is Shape.PERTURBED:
            rows = perturbed(rows, key.repeat, 1 / GRID if self.arm is Arm.NATIVE else 1 / GRID / FINER)
        greedy = np.full(len(output_ids), Greedy.FORCED, np.uint8)
        output = np.asarray(output_ids, dtype=np.int32)
        return self._trace(key, canary, rendered, output, rows, greedy, StopReason.FORCED)

    def close(self) -> None:
        """Nothing to let go."""

    def _before(self, canary: Canary) -> None:
        self.executions += 1
        time.sleep(self.faults.slow)
        if self.faults.unmeasured == canary.id:
            raise CannotMeasureError(f"Canary {canary.id!r} cannot be measured here.", remedy="Remove the fault.")
        if self.faults.crash == canary.id:
            raise RuntimeError("a planted crash")
        if self.faults.exit == canary.id:
            os._exit(EXIT_CODE)

    def _seen(self, ids: Sequence[int], first: int) -> NDArray[np.float32]:
        """Logits of this arm from position `first` on [T - first, VOCAB]."""
        rows: NDArray[np.float32] = self.model.forward(ids)[1][first:]
        if self.arm is Arm.NATIVE:
            rows = natively(rows, first, self.faults) + np.float32(self._flakiness())
        return rows

    def _flakiness(self) -> float:
        if self.faults.flaky is None:
            return 0.0
        return (os.getpid() % 509 if self.faults.flaky == "process" else self.executions) / 64

    def _choose(self, row: NDArray[np.float32], step: int) -> tuple[int, Greedy]:
        if self.faults.not_greedy == step:
            return int(np.argsort(-row, kind="stable")[1]), Greedy.VIOLATED
        return int(np.argmax(row)), Greedy.PROVEN

    def _trace(
        self,
        key: TraceKey,
        canary: Canary,
        rendered: Rendered,
        output: NDArray[np.int32],
        rows: NDArray[np.float32],
        greedy: NDArray[np.uint8],
        stop: StopReason,
    ) -> Trace:
        head = Head(
            declared=self._declared(key, canary),
            stop=stop,
            dtype="float32",
            vocab=VOCAB,
            prompt_ids=np.asarray(rendered.ids, dtype=np.int32),
            output_ids=output,
            greedy=greedy,
            **head_arrays(rows, output),
        )
        pieces = tuple(bytes([i]) if i < END else b"<end>" for i in output.tolist())
        return Trace(
            key=key,
            input_digest=input_digest(rendered.ids, canary.settings),
            head=head,
            layers=self._layers(key.probe, len(rendered.ids), [*rendered.ids, *output[:-1].tolist()]),
            text=TraceText(rendered=rendered.text, pieces=pieces),
        )

    def _declared(self, key: TraceKey, canary: Canary) -> Declaration:
        return Declaration(
            probe=key.probe,
            arm=self.arm,
            shape=key.shape,
            batch="rows=1" if key.shape is Shape.ALONE else "rows=4,filler=v1",
            cache="none",
            token_limit=canary.settings.max_new_tokens,
            k=min(TOP_K, VOCAB),
        )

    def _layers(self, probe: Probe, prompt: int, ids: Sequence[int]) -> Layers:
        """The states of every position; a decode keeps its steps and one digest of its prefill per block."""
        states = self.model.forward(ids)[0]  # (L, T, H)
        first = prompt if probe is Probe.DECODE else 0
        sums = digest.row_sums(states[:, first:])
        at = positions(states.shape[1], POSITIONS_32BIT) if probe is Probe.SCORE else np.zeros(0, np.int32)
        prefill = digest.row_sums(states[:, :first].reshape(BLOCKS, -1)) if first else np.zeros(0, np.uint64)
        leaves = [digest.leaf("float32", HIDDEN, int(s)) for s in sums.reshape(-1)]
        return Layers(
            blocks=tuple(f"blocks.{n}" for n in range(BLOCKS)),
            dtype="float32",
            hidden=HIDDEN,
            first_position=first,
            root=digest.merkle_root(leaves),
            cells=(sums >> np.uint64(32)).astype(np.uint32),
            rms=quantise(np.sqrt((states[:, first:].astype(np.float64) ** 2).mean(axis=2))),
            absmax=quantise(np.abs(states[:, first:]).max(axis=2, initial=0.0)),
            nonfinite=(~np.isfinite(states[:, first:])).sum(axis=2).astype(np.int32),
            prefill=prefill,
            sketch=(states[:, at] @ signs(HIDDEN).T).astype(np.float32).reshape(BLOCKS, len(at), SKETCH_K),
            sketch_positions=at,
            experts=np.zeros((0, sums.shape[1]), np.uint32),
        )
