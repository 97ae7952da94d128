"""Planted changes: a copy of a model folder with one thing different, for the demonstration and for sensitivity tests.

`python -m runner.planting SOURCE TARGET damage --tensor NAME` or `… penalty --value 1.3`; `--help` lists every change.
The source is never touched; files that stay the same are linked. Knows no replay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from driftpin.errors import DriftpinError
from runner import planting_layout as layout
from runner import planting_text as text
from runner.planting_folder import WEIGHTS, copy_model, rewrite

__all__ = ["PLANTS", "WEIGHTS", "Options", "copy_model", "damage", "main", "penalty", "plant"]


class Options(argparse.Namespace):
    """What a change may be told; each reads those that it needs."""

    tensor: str = ""  # a tensor's name in the file
    block: int = 0  # a block's number
    value: float = 1.3  # a penalty, a factor, an exponent of two
    bits: int = 8  # of a rounded weight
    bit: int = 0  # to flip, 0 being the lowest of the mantissa
    place: int = 0  # of the element, counted through the tensor
    words: str = ""  # a merge ("a b"), a normaliser's type, text for a template


Plant = Callable[[Path, Path, Options], int]


def _weights(edit: str) -> Plant:
    """A change of `planting_weights` by name; torch is loaded only when it is planted."""

    def planted(source: Path, target: Path, options: Options) -> int:
        from runner import planting_weights  # noqa: PLC0415 - torch is heavy

        return rewrite(source, target, partial(getattr(planting_weights, edit), options=options))

    return planted


PLANTS: dict[str, Plant] = {
    "damage": _weights("damage"),
    "noise": _weights("noise"),
    "flip": _weights("flip"),
    "nan": _weights("nan"),
    "identity": _weights("identity"),
    "half_mlp": _weights("half_mlp"),
    "round": _weights("round_weights"),
    "router": _weights("router"),
    "experts_swapped": _weights("experts_swapped"),
    "permute": lambda source, target, _: layout.permute(source, target),
    "remove": lambda source, target, options: layout.remove(source, target, options.block),
    "rope": lambda source, target, options: layout.rope(source, target, options.value),
    "penalty": lambda source, target, options: text.penalty(source, target, options.value),
    "template": lambda source, target, options: text.template(source, target, options.words),
    "system": lambda source, target, options: text.system(source, target, options.words),
    "merge": lambda source, target, options: text.merge(source, target, options.words),
    "normalizer": lambda source, target, options: text.normalizer(source, target, options.words),
}


def plant(source: Path, target: Path, change: str, options: Options) -> int:
    """Plant a change by name; returns how many numbers or entries differ, 0 where the format cannot hold it."""
    return PLANTS[change](source, target, options)


def damage(source: Path, target: Path, tensor: str) -> int:
    """Zero one quarter of one tensor's rows, as a failed write would."""
    return plant(source, target, "damage", Options(tensor=tensor))


def penalty(source: Path, target: Path, value: float) -> int:
    """Leave a repetition penalty in the generation configuration, as fine-tuning scripts do."""
    return plant(source, target, "penalty", Options(value=value))


def main(arguments: list[str]) -> int:
    """Exit status 0, or 2 with a sentence on standard error."""
    parser = argparse.ArgumentParser(prog="python -m runner.planting")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("change", choices=sorted(PLANTS))
    parser.add_argument("--tensor", default=Options.tensor)
    parser.add_argument("--block", type=int, default=Options.block)
    parser.add_argument("--value", type=float, default=Options.value)
    parser.add_argument("--bits", type=int, default=Options.bits)
    parser.add_argument("--bit", type=int, default=Options.bit)
    parser.add_argument("--place", type=int, default=Options.place)
    parser.add_argument("--words", default=Options.words)
    asked = parser.parse_args(arguments, namespace=Options())
    try:
        plant(asked.source, asked.target, asked.change, asked)
    except DriftpinError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
