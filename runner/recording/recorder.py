"""Recorders: hooks on a model that write down what passes, and take themselves off again.

The row of interest is row 0 of the batch; its real tokens are the last ones, behind any left padding. Logits are
taken from the top-level model's output, since some models scale after their `lm_head`. Knows nothing of generation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from driftpin.trace import sketch
from runner.recording import digest, hidden, logits
from runner.recording.blocks import Blocks, Router, find_blocks, find_routers
from runner.recording.greedy import GreedyWitness
from runner.recording.hidden import HiddenStats
from runner.recording.steps import ExpertSteps, HiddenSteps, LogitSteps

HOOKLESS = "a compiled or graph-captured model is recorded without layer hooks"
CACHE_NAMES = ("cache", "past_key_values")  # of an output's key-value cache, newest version first


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerRecord:
    """What was seen of L blocks at P positions, before it is packed into `Layers`."""

    blocks: tuple[str, ...]
    dtype: torch.dtype
    hidden: int
    stats: HiddenStats  # each [L, P]
    prefill: NDArray[np.uint64]  # [L], or [0] where there was no decode
    sketch: NDArray[np.float32]  # [L, S, 8]
    sketch_positions: NDArray[np.int32]  # [S]
    experts: dict[str, NDArray[np.uint32]]  # by block, each [P]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """What one execution left behind; `layers` is None for the reason in `layers_absent`."""

    logits: logits.LogitStats
    dtype: torch.dtype  # of the raw logits
    vocab: int
    cache: str  # class of the key-value cache that the model handed back, or "none"
    layers: LayerRecord | None
    layers_absent: str | None


class Recorder:
    """Common to both probes: installs hooks on entering, removes them on leaving, and knows where row 0 lies."""

    def __init__(self, model: nn.Module, *, prompt: int, batch: int, layers: bool) -> None:
        self._model = model
        self._prompt = prompt  # real tokens of row 0 in the first forward
        self._batch = batch  # rows
        self._blocks = find_blocks(model) if layers else Blocks(modules={}, absent=HOOKLESS)
        self._routers: tuple[Router, ...] = find_routers(self._blocks)
        self._experts = ExpertSteps(routers=len(self._routers))
        self._absent = self._blocks.absent
        self._cache = "none"
        self._state: torch.Tensor | None = None  # one hidden state, for its dtype and width
        self._hooks: list[Any] = []

    def __enter__(self) -> Self:
        for lane, block in enumerate(self._blocks.modules.values()):
            self._hooks.append(block.register_forward_hook(self._block_hook(lane)))
        for index, router in enumerate(self._routers):
            self._hooks.append(router.listen.register_forward_hook(self._router_hook(index, router)))
        self._hooks.append(self._model.register_forward_hook(self._output_hook))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _block_hook(self, lane: int) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if self._absent:
                return
            states = output[0] if isinstance(output, tuple) else output
            if not isinstance(states, torch.Tensor) or states.ndim != 3 or len(states) != self._batch:
                self._absent = f"{type(module).__name__} does not put out one state per row and token"
                return
            if self._state is None:
                self._state = states[0, -1:].clone()  # a view would keep all states of the block
            self._take_states(lane, states.select(0, 0))  # select costs a third of indexing, in the hottest place

        return hook

    def _router_hook(self, index: int, router: Router) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            ids = router.pick(inputs, output)  # [batch * tokens, k]
            mine = None if ids is None else ids[: len(ids) // self._batch]
            self._experts.take(index, None if mine is None else self._mine(mine))

        return hook

    def _output_hook(self, module: nn.Module, inputs: Any, output: Any) -> None:
        present = () if isinstance(output, tuple) else tuple(output)  # names; to ask for an old one draws a warning
        names = [name for name in CACHE_NAMES if name in present]
        self._cache = type(output[names[0]]).__name__ if names else "none"
        self._take_logits(output[0] if isinstance(output, tuple) else output.logits)

    def _experts_by_block(self, positions: int) -> dict[str, NDArray[np.uint32]]:
        found = self._experts.finish(positions)
        return {self._routers[index].block: digests for index, digests in found.items()}

    def _take_states(self, lane: int, states: torch.Tensor) -> None:
        """Record states [tokens, hidden] of row 0."""
        raise NotImplementedError

    def _take_logits(self, rows: torch.Tensor) -> None:
        """Record raw logits [batch, tokens, vocab]; the forward ends here."""
        raise NotImplementedError

    def _mine(self, ids: torch.Tensor) -> torch.Tensor:
        """The positions to record among row 0's [tokens, k]."""
        raise NotImplementedError


class DecodeRecorder(Recorder):
    """Records a greedy `generate`: hand `witness` to it as its last logits processor."""

    def __init__(
        self, model: nn.Module, *, prompt: int, width: int, batch: int, limit: int, forcing: bool, layers: bool = True
    ) -> None:
        super().__init__(model, prompt=prompt, batch=batch, layers=layers)
        self._width = width  # tokens of the prompt, padding included
        self._hidden = HiddenSteps(lanes=len(self._blocks.modules), limit=limit)
        self._logits = LogitSteps(limit=limit)
        self._prefill: dict[int, torch.Tensor] = {}  # by lane: int64 [prompt]
        self._prefilling = True
        self.witness = GreedyWitness(forcing=forcing, seen=self._tokens_seen)

    def finish(self, output_ids: torch.Tensor) -> Recording:
        """Close the record of the emitted tokens of row 0, int64 [N], N >= 1."""
        return Recording(
            logits=self._logits.finish(output_ids),
            dtype=self._logits.dtype,
            vocab=self._logits.vocab,
            cache=self._cache,
            layers=self._layers(len(output_ids)),
            layers_absent=self._absent,
        )

    def _layers(self, steps: int) -> LayerRecord | None:
        if self._absent or self._state is None:
            return None
        sums = np.stack([digest.to_u64(self._prefill[lane]) for lane in sorted(self._prefill)])
        return LayerRecord(
            blocks=tuple(self._blocks.modules),
            dtype=self._state.dtype,
            hidden=self._state.shape[-1],
            stats=self._hidden.finish(steps),
            prefill=digest.combined(sums),
            sketch=np.zeros((len(sums), 0, sketch.SKETCH_K), dtype=np.float32),
            sketch_positions=np.zeros(0, dtype=np.int32),
            experts=self._experts_by_block(steps),
        )

    def _take_states(self, lane: int, states: torch.Tensor) -> None:
        if self._prefilling:
            self._prefill[lane] = digest.row_sums(states[-self._prompt :])
        self._hidden.take(lane, states.select(0, -1))

    def _take_logits(self, rows: torch.Tensor) -> None:
        self._logits.take(rows[0, -1])
        self._prefilling = False
        if not self._absent:
            self._hidden.step()

    def _mine(self, ids: torch.Tensor) -> torch.Tensor:
        return ids[-1:]

    def _tokens_seen(self, input_ids: torch.Tensor) -> None:
        self._logits.settle(input_ids[0, self._width :])


class ScoreRecorder(Recorder):
    """Records one teacher-forced forward: every position's states, and the logits of the scored positions."""

    def __init__(
        self, model: nn.Module, *, length: int, batch: int, output_ids: torch.Tensor, layers: bool = True
    ) -> None:
        super().__init__(model, prompt=length, batch=batch, layers=layers)
        self._output_ids = output_ids  # int64 [N], the given tokens; logits for them are the last N
        self._positions: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._stats: dict[int, hidden.HiddenStats] = {}  # by lane: each [length]
        self._sketches: dict[int, NDArray[np.float32]] = {}  # by lane: [S, 8]
        self._measured: logits.LogitStats | None = None
        self._rows: torch.Tensor | None = None  # one logit row, for its dtype and width

    def finish(self) -> Recording:
        """Close the record."""
        if self._measured is None or self._rows is None:
            raise RuntimeError("finish() was called before a forward")
        return Recording(
            logits=self._measured,
            dtype=self._rows.dtype,
            vocab=self._rows.shape[-1],
            cache=self._cache,
            layers=self._layers(),
            layers_absent=self._absent,
        )

    def _layers(self) -> LayerRecord | None:
        if self._absent or self._state is None:
            return None
        lanes = sorted(self._stats)
        return LayerRecord(
            blocks=tuple(self._blocks.modules),
            dtype=self._state.dtype,
            hidden=self._state.shape[-1],
            stats=hidden.HiddenStats.stacked([self._stats[lane] for lane in lanes]),
            prefill=np.zeros(0, dtype=np.uint64),
            sketch=np.stack([self._sketches[lane] for lane in lanes]),
            sketch_positions=self._positions,
            experts=self._experts_by_block(self._prompt),
        )

    def _take_states(self, lane: int, states: torch.Tensor) -> None:
        mine = states[-self._prompt :]
        self._positions = sketch.positions(self._prompt, hidden.sketch_count(mine.dtype))
        self._stats[lane] = hidden.measure(mine)
        chosen = torch.from_numpy(self._positions.astype(np.int64)).to(mine.device)
        self._sketches[lane] = hidden.sketched(mine.index_select(0, chosen))

    def _take_logits(self, rows: torch.Tensor) -> None:
        mine = rows[0, -len(self._output_ids) :]
        self._measured = logits.measure(mine, self._output_ids)
        self._rows = mine[-1:].clone()

    def _mine(self, ids: torch.Tensor) -> torch.Tensor:
        return ids[-self._prompt :]
