"""Scores many prompts through a model of which only one block is loaded at a time, with the bits of a whole one.

Three passes. The model's forward runs once per score around stubs, which keep what each block is called with. Then
block by block: load it, run it for every score, free it. At last the forward runs once more around stubs that hand on
the final states, so that norm, head and scaling are the model's own. What a stub hands on in the first pass is not a
number: whatever a model computes from it, beside handing it to the next block, would show, and is refused.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn

from runner.engines.bench import Run, Scoring
from runner.engines.protocol import Told, untold
from runner.engines.stubs import Call, Output, apart, like, standing_in, states_of
from runner.piecewise import Pieces

Outcome = Run | Exception
Maker = Callable[[], Scoring]


@dataclass(kw_only=True, eq=False)
class Passage:
    """One score on its way through the blocks."""

    scoring: Scoring
    calls: list[Call] = field(default_factory=list)  # by block, without states
    states: torch.Tensor | None = None  # before the next block, parked on the CPU
    error: Exception | None = None

    def attempt(self, step: Callable[[Passage], None]) -> None:
        """Take a step; what goes wrong is this passage's outcome, and it goes no further."""
        if self.error is not None:
            return
        try:
            step(self)
        except Exception as error:  # noqa: BLE001 - raised again where this score is asked for
            traceback.clear_frames(error.__traceback__)  # they hold on to states
            self.error, self.states = error, None
            self.calls.clear()

    def outcome(self) -> Outcome:
        """What was recorded, or what went wrong."""
        return self.error or self.scoring.finish()


class _Enough(Exception):  # noqa: N818 - no error: the forward is left where everything is known
    """Every block's call is kept."""


class Blockwise:
    """The passes of one model."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._paths = tuple(pieces.blocks)
        self._form: Output = None  # what a block puts out, to be imitated: with empty states

    @torch.inference_mode()
    def try_out(self, make: Maker) -> None:
        """Raise `CannotMeasureError` where the blocks cannot be run apart. The first stays loaded for what comes."""
        self._enter(self._pieces.load(self._paths[0]), Passage(scoring=make()))

    @torch.inference_mode()
    def run(self, makers: Sequence[Maker], told: Told = untold) -> list[Outcome]:
        """The outcome of each score, in order. One that fails spoils no other; what fails for all is raised."""
        passages = [_passage(make) for make in makers]
        going = [passage for passage in passages if isinstance(passage, Passage)]
        for number, path in enumerate(self._paths):
            with self._loaded(path) as block:
                for passage in going if number == 0 else ():
                    passage.attempt(partial(self._enter, block))
                for passage in going:
                    passage.attempt(partial(self._through, block, number))
            told(number + 1, len(self._paths))
            if all(passage.error for passage in going):
                break
        for passage in going:
            passage.attempt(self._leave)
        return [one.outcome() if isinstance(one, Passage) else one for one in passages]

    @contextmanager
    def _loaded(self, path: str) -> Iterator[nn.Module]:
        try:
            yield self._pieces.load(path)
        finally:
            self._pieces.free(path)

    def _enter(self, first: nn.Module, passage: Passage) -> None:
        """Keep every block's call, and the states before the first."""
        entering = _Entering(passage, len(self._paths), partial(self._imitated, first))
        with standing_in(self._pieces.model, self._pieces.blocks, entering.called):
            try:
                passage.scoring.forward()
            except _Enough:
                return
        raise apart(f"only {len(passage.calls)} of {len(self._paths)} are called")

    def _imitated(self, first: nn.Module, call: Call) -> Output:
        """The form of a block's output, from a run of the first: which one it is depends on transformers' version."""
        if self._form is None:
            tried = copy.deepcopy(call)  # a block may write into what it is given
            output = first(*tried.args, **tried.kwargs)
            self._form = like(output, states_of(output)[:0])
        return self._form

    def _through(self, block: nn.Module, number: int, passage: Passage) -> None:
        call = passage.calls[number].on(self._unparked(passage))
        with passage.scoring.recorder:
            output = block(*call.args, **call.kwargs)
        passage.states = states_of(output).cpu()

    def _leave(self, passage: Passage) -> None:
        """Norm and head, on what the last block put out."""
        final = like(self._form, self._unparked(passage))
        with standing_in(self._pieces.model, self._pieces.blocks, lambda number, call: final), passage.scoring.recorder:
            passage.scoring.forward()
        passage.states = None
        passage.calls.clear()

    def _unparked(self, passage: Passage) -> torch.Tensor:
        if passage.states is None:
            raise RuntimeError("a passage without states")
        return passage.states.to(self._pieces.device)


class _Entering:
    """What the stubs do in the first pass."""

    def __init__(self, passage: Passage, blocks: int, form_of: Callable[[Call], Output]) -> None:
        self._passage, self._blocks, self._form_of = passage, blocks, form_of
        self._handed: torch.Tensor | None = None
        self._clean: set[int] = set()  # ids of tensors without poison; the calls keep them alive

    def called(self, number: int, call: Call) -> Output:
        """Keep the call; hand on poison."""
        passage = self._passage
        if number != len(passage.calls):
            raise apart("they are not called one after the other")
        if self._handed is None:
            passage.states = call.states.cpu()
        elif call.states is not self._handed:
            raise apart("the states are changed between them")
        self._refuse_poison(call, first=self._handed is None)
        form = self._form_of(call)
        passage.calls.append(call.on(None))
        if len(passage.calls) == self._blocks:
            raise _Enough
        self._handed = torch.full_like(call.states, torch.nan)
        return like(form, self._handed)

    def _refuse_poison(self, call: Call, *, first: bool) -> None:
        for tensor in call.tensors():
            if not first and id(tensor) not in self._clean and bool(tensor.isnan().any()):
                raise apart("a block is given more of the others than the states before it")
            self._clean.add(id(tensor))


def _passage(make: Maker) -> Passage | Exception:
    try:
        return Passage(scoring=make())
    except Exception as error:  # noqa: BLE001 - the caller gets it as this score's outcome
        return error
