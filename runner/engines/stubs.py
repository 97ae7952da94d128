"""Stand-ins for a model's blocks: the model's own forward runs around them, and they say what it wanted of a block.

Knows modules and calls; nothing of weights, prompts or recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from driftpin.errors import CannotMeasureError

STATES = "hidden_states"  # what transformers calls a block's first argument

Output = Any  # of a block: states [rows, tokens, hidden], or a tuple that begins with them
Called = Callable[[int, "Call"], Output]  # by a stub's number


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """A block's arguments."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def states(self) -> torch.Tensor:
        """What the block works on; `CannotMeasureError` where it is given something else first."""
        found = self.args[0] if self.args else self.kwargs.get(STATES)
        if not isinstance(found, torch.Tensor) or not found.is_floating_point():
            raise apart("a block is not given its states first")
        return found

    def on(self, states: torch.Tensor | None) -> Call:
        """The same with other states; None leaves a call that holds on to none."""
        if self.args:
            return Call(args=(states, *self.args[1:]), kwargs=self.kwargs)
        return Call(args=(), kwargs={**self.kwargs, STATES: states})

    def tensors(self) -> Iterator[torch.Tensor]:
        """Every floating-point tensor beside the states."""
        yield from _floats([*self.args[1:], *(part for name, part in self.kwargs.items() if name != STATES)])


class Stub(nn.Module):
    """In a block's place; attributes that the model asks of the block are the block's."""

    def __init__(self, block: nn.Module, index: int, called: Called) -> None:
        super().__init__()
        self.__dict__["_stands_for"] = block  # not as a submodule: it would be moved and counted
        self._index, self._called = index, called

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_stands_for"], name)

    def forward(self, *args: Any, **kwargs: Any) -> Output:
        """Tell the call and hand on what is said to it."""
        return self._called(self._index, Call(args=args, kwargs=kwargs))


@contextmanager
def standing_in(model: nn.Module, blocks: Mapping[str, nn.Module], called: Called) -> Iterator[None]:
    """While it lasts, `blocks` (by module path) are replaced by stubs that ask `called`."""
    for index, (path, block) in enumerate(blocks.items()):
        _put(model, path, Stub(block, index, called))
    try:
        yield
    finally:
        for path, block in blocks.items():
            _put(model, path, block)


def states_of(output: Output) -> torch.Tensor:
    """The states in what a block put out."""
    states = output[0] if isinstance(output, tuple) else output
    if not isinstance(states, torch.Tensor):
        raise apart(f"a block puts out {type(output).__name__}")
    return states


def like(output: Output, states: torch.Tensor) -> Output:
    """`output` with other states in it."""
    return (states, *output[1:]) if isinstance(output, tuple) else states


def apart(reason: str) -> CannotMeasureError:
    """The refusal for a model whose blocks depend on each other in more ways than one after the other."""
    return CannotMeasureError(
        f"This model's blocks cannot be run apart: {reason}.",
        remedy='Use a device on which it fits, or say options = { reference = "whole" }.',
    )


def _put(model: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    model.get_submodule(parent)._modules[name] = module


def _floats(part: Any) -> Iterator[torch.Tensor]:
    if isinstance(part, torch.Tensor):
        if part.is_floating_point():
            yield part
    elif isinstance(part, Mapping):
        yield from _floats(list(part.values()))
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _floats(one)
