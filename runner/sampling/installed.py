"""What the installed transformers knows by name. Nothing of effects or values."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

make: Any = GenerationConfig  # its constructor is not annotated


def known_names() -> frozenset[str]:
    """Every setting that the installed transformers' GenerationConfig has."""
    return frozenset(make().to_dict())
