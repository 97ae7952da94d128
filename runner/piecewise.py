"""A model whose blocks are loaded one at a time: embeddings, norm and head stay, a block comes and goes.

Knows modules and tensors; nothing of prompts or of what runs through a block.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from driftpin.errors import CannotMeasureError, ModelError
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm
from runner.checkpoint import Checkpoint
from runner.filling import Filler, filler_for
from runner.loading import RANDOM, Loaded, device_of, dtype_of, listed, quiet, read_tokenizer
from runner.memory import give_back
from runner.model_folder import check_folder
from runner.recording.blocks import find_blocks
from runner.skeleton import empty_model

REST = None  # the piece that is no block
OLD_ROTARY = r"rotary_emb\.inv_freq"  # old files hold what every version computes; transformers passes over it too


class Pieces:
    """The model's blocks by module path, in order, and what loads them."""

    def __init__(self, model: Any, checkpoint: Checkpoint, device: torch.device) -> None:
        found = find_blocks(model)
        if found.absent is not None:
            raise CannotMeasureError(f"This model cannot be run block by block: {found.absent}.")
        self.model, self.blocks = model, found.modules
        self._checkpoint, self.device = checkpoint, device
        self._filler: Filler = filler_for(model)
        self._names: dict[str | None, list[str]] = defaultdict(list)  # of the checkpoint, by block or REST
        self._there: set[str] = set()  # blocks that are loaded
        self.unexpected: tuple[str, ...] = self._sort()

    def load_rest(self) -> None:
        """Everything but the blocks, once; `ModelError` where something is missing."""
        self._read(REST)
        outside = [name for name, _ in self.model.named_parameters() if self._block_of(name) is REST]
        self._tie({name for name in outside if self.model.get_parameter(name).is_meta})
        self._refuse_gaps(name for name in outside)
        self._move_buffers(self.model)
        self.model.requires_grad_(False)

    def load(self, path: str) -> nn.Module:
        """A block's weights, onto the device; nothing to do for one that is still there."""
        block = self.blocks[path]
        if path not in self._there:
            self._read(path)
            self._there.add(path)
            self._refuse_gaps(f"{path}.{name}" for name, _ in block.named_parameters())
        return block.requires_grad_(False)

    def free(self, path: str) -> None:
        """Let go of a block's weights; its buffers stay."""
        self._there.discard(path)
        for module in self.blocks[path].modules():
            for name, parameter in module.named_parameters(recurse=False):
                hollow = torch.empty_like(parameter, device="meta")
                setattr(module, name, nn.Parameter(hollow, requires_grad=False))
        give_back()

    def close(self) -> None:
        """Let go of the files."""
        self._checkpoint.close()

    def _sort(self) -> tuple[str, ...]:
        """Give every tensor to its piece; those without one are returned."""
        unexpected = []
        for name in self._checkpoint.names:
            target = self._filler.target(name)
            if target is None:
                unexpected.append(name)
            else:
                self._names[self._block_of(target)].append(name)
        silent = [*(getattr(self.model, "_keys_to_ignore_on_load_unexpected", None) or ()), OLD_ROTARY]
        return tuple(name for name in unexpected if not any(re.search(pattern, name) for pattern in silent))

    def _block_of(self, name: str) -> str | None:
        return next((path for path in self.blocks if name.startswith(f"{path}.")), REST)

    def _read(self, piece: str | None) -> None:
        tensors = {name: self._checkpoint.read(name) for name in self._names[piece]}
        with quiet():
            self._filler.fill(tensors, self.device)

    def _tie(self, missing: set[str]) -> None:
        """transformers 5 wants to know what no file gave; 4 finds out by itself."""
        takes = inspect.signature(self.model.tie_weights).parameters
        self.model.tie_weights(**({"missing_keys": missing} if "missing_keys" in takes else {}))

    def _refuse_gaps(self, names: Any) -> None:
        if missing := sorted(name for name in names if self.model.get_parameter(name).is_meta):
            raise ModelError(f"The weights lack {listed(missing)}.", remedy=RANDOM)

    def _move_buffers(self, model: nn.Module) -> None:
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                module._buffers[name] = buffer.to(self.device)


def load_in_pieces(recipe: Recipe, arm: Arm) -> tuple[Loaded, Pieces]:
    """Everything but the blocks on the device; errors as of `runner.loading.load_model`, and `CannotMeasureError`."""
    files = check_folder(recipe.path)
    folder = files[0].parent
    with quiet() as said:
        tokenizer = read_tokenizer(folder, recipe)
        model = empty_model(folder, recipe)
        pieces = Pieces(model, Checkpoint(files), device_of(recipe))
        pieces.load_rest()
        _take_generation_file(model, folder)
    loaded = Loaded(
        model=model,
        tokenizer=tokenizer,
        path=folder,
        dtype=dtype_of(recipe, arm),
        files=files,
        unexpected_keys=pieces.unexpected,
        warnings=tuple(dict.fromkeys(said)),
    )
    return loaded, pieces


def _take_generation_file(model: Any, folder: Path) -> None:
    """As an ordinary load does; without the file the model's own configuration has already been asked."""
    try:
        model.generation_config = transformers.GenerationConfig.from_pretrained(folder, local_files_only=True)
    except OSError:
        return
