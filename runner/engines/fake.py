"""The fake engine: a byte tokenizer and an arithmetic model that run the whole pipeline in milliseconds.

It is product code: tests and `driftpin doctor` use it. Its `options.faults` make it fail in the ways in which real
targets fail. It never imports torch.

Faults: `weight` {block, by} and `nan` {block} damage the model; `logit_noise` moves every logit; `one_token` repeats an
id; `not_greedy` emits the runner-up at that position; `tokenizer` splits digits otherwise; `unmeasured` and `crash`
name a canary that cannot be measured or that raises; `exit` ends the process there; `slow` waits that many seconds per
canary; `flaky` makes each execution differ from the last, and with the value "process" each process from the others;
`missing_keys` refuses to load; `facts` {section: {name: value}} changes the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
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
from runner.engines.fake_model import BLOCKS, END, GRID, HIDDEN, VOCAB, FakeModel
from runner.engines.protocol import Rendered
from runner.recording.rows import head_arrays

EXIT_CODE = 70  # of the fault `exit`


def rounding_noise(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """What stands for rounding here: one step of the model's grid on or off each logit, from splitmix64."""
    index = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64((seed + 1) << 40)
    signs = 1.0 - 2.0 * (digest.splitmix64(index) >> np.uint64(63)).astype(np.float32)
    return (signs / np.float32(GRID)).astype(np.float32).reshape(shape)


class FakeEngine:
    """An `Engine` without a model; see the module's first lines for its faults."""

    def __init__(self, recipe: Recipe, arm: Arm, suite: Suite) -> None:
        self.recipe, self.arm, self.suite = recipe, arm, suite
        self.faults: Mapping[str, Any] = recipe.options.get("faults", {})
        self.executions = 0

    def load(self) -> None:
        """Build the model; the fault `missing_keys` is refused like a real file with missing weights."""
        if keys := self.faults.get("missing_keys"):
            raise ModelError(f"Model {self.recipe.model!r} lacks weights: {', '.join(keys)}.", remedy="Restore them.")
        self.model = FakeModel(faults=self.faults)

    def environment(self, *, verify_weights: bool = False) -> Environment:
        """Facts that follow from the recipe alone, so that equal recipes have equal environments."""
        probe = FakeModel(faults=self.faults).forward(range(8))[1]
        sums = [hex64(int(n)) for n in digest.row_sums(probe)]
        weights = digest_of([[str(v) for v in gate] for gate in self.model.gates])
        sections: dict[str, dict[str, Any]] = {
            "model": {"weights.fake": weights, "parameters.dtypes": {self.recipe.dtype: BLOCKS}},
            "stack": {"library.fake": "1", "device.class": "fake"},
            "behaviour": {"forward.m8": digest_of(sums)},
            "context": {},
        }
        for section, facts in self.faults.get("facts", {}).items():
            sections[section] |= facts
        return Environment(**sections)

    def render(self, canary: Canary, clock: str | None) -> Rendered:
        """Roles and contents on lines of their own, as UTF-8 bytes."""
        if canary.prompt is not None:
            text = canary.prompt
        else:
            text = "".join(f"<{m.role}>{m.content}\n" for m in canary.messages) + "<assistant>"
        if "tokenizer" in self.faults:
            text = "".join(f"{c}\x01" if c.isdigit() else c for c in text)
        ids = tuple(text.encode("utf-8", "surrogatepass"))
        if not ids:
            raise SuiteError(f"Canary {canary.id!r} renders to nothing.", remedy="Give it a prompt.")
        return Rendered(text=text, ids=ids)

    def warm_up(self) -> None:
        """One short forward whose result is thrown away."""
        self.model.forward(range(4))

    def decode(self, key: TraceKey, canary: Canary, rendered: Rendered) -> Trace:
        """Greedy generation, one forward per token."""
        self._before(canary)
        ids, rows, greedy = list(rendered.ids), [], []
        for step in range(canary.settings.max_new_tokens):
            row = self._row(ids)
            rows.append(row)
            chosen, proven = self._choose(row, step)
            greedy.append(proven)
            ids.append(chosen)
            if chosen == END:
                break
        output = np.asarray(ids[len(rendered.ids) :], dtype=np.int32)
        stop = StopReason.END if ids[-1] == END else StopReason.LENGTH
        return self._trace(key, canary, rendered, output, np.stack(rows), np.asarray(greedy, np.uint8), stop)

    def score(self, key: TraceKey, canary: Canary, rendered: Rendered, output_ids: Sequence[int]) -> Trace:
        """One forward over prompt and given outputs."""
        self._before(canary)
        ids = [*rendered.ids, *output_ids[:-1]]
        rows = self._noisy(self.model.forward(ids)[1])[len(rendered.ids) - 1 :]
        if key.shape is Shape.PERTURBED:
            rows = rows + rounding_noise(rows.shape, key.repeat)
        greedy = np.full(len(output_ids), Greedy.FORCED, np.uint8)
        output = np.asarray(output_ids, dtype=np.int32)
        return self._trace(key, canary, rendered, output, rows, greedy, StopReason.FORCED)

    def observer_check(self, canary: Canary, rendered: Rendered) -> str | None:
        """Nothing observes here, so nothing can disturb."""
        return None

    def close(self) -> None:
        """Nothing to let go."""

    def _before(self, canary: Canary) -> None:
        self.executions += 1
        time.sleep(self.faults.get("slow", 0))
        if self.faults.get("unmeasured") == canary.id:
            raise CannotMeasureError(f"Canary {canary.id!r} cannot be measured here.", remedy="Remove the fault.")
        if self.faults.get("crash") == canary.id:
            raise RuntimeError("a planted crash")
        if self.faults.get("exit") == canary.id:
            os._exit(EXIT_CODE)

    def _row(self, ids: Sequence[int]) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._noisy(self.model.forward(ids)[1][-1:])[0]
        return row

    def _noisy(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        flaky = self.faults.get("flaky")
        if flaky is None:
            return rows
        steps = os.getpid() % 509 if flaky == "process" else self.executions
        moved: NDArray[np.float32] = rows + np.float32(steps / 64)
        return moved

    def _choose(self, row: NDArray[np.float32], step: int) -> tuple[int, Greedy]:
        if self.faults.get("not_greedy") == step:
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
