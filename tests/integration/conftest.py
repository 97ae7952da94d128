"""Tiny models, made once per session; every test loads its own copy, so that it may damage it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A randomly initialised Llama of four blocks, with its tokenizer."""
    from tiny_models import tiny_llama

    return tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def mixture_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A randomly initialised mixture of experts of four blocks, with its tokenizer."""
    from tiny_models import tiny_mixture

    return tiny_mixture(tmp_path_factory.mktemp("mixture"))
