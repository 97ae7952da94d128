"""The same tests under every pair of torch and transformers: `make pairs` puts another transformers before the first.

DRIFTPIN_PAIR names the pair by its lock; without it the environment's own transformers is tested.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from replaying import kept_process_state

LOCKS = Path(__file__).resolve().parents[2] / "locks"
PAIR = os.environ.get("DRIFTPIN_PAIR")
OVERLAID = bool(PAIR) and "PYTHONPATH" in os.environ  # not in an environment of the pair's own
collect_ignore = [] if OVERLAID else ["test_pair_across.py"]  # there is no second version to replay under


def pytest_configure(config: pytest.Config) -> None:
    if PAIR:  # an older library's own deprecations are not ours to mend
        config.addinivalue_line("filterwarnings", "ignore:::(transformers|huggingface_hub|tokenizers)")


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    """Loading an engine changes the process for good; a test session has to go on."""
    with kept_process_state():
        yield


def locked(name: str) -> str:
    """The version that the lock of the pair, or of the environment, gives."""
    lock = f"pair-{PAIR}" if PAIR else "runner"
    found = re.search(rf"^{name}==(\S+)", (LOCKS / f"{lock}.txt").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(scope="session")
def pair_transformers() -> str:
    """The version of transformers that is to be tested."""
    return locked("transformers")


@pytest.fixture(scope="session")
def pair_tokenizers() -> str:
    """The version of tokenizers that goes with it."""
    return locked("tokenizers")


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of four blocks, saved by the transformers under test."""
    from tiny_models import tiny_llama

    return tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def mixture_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mixture of experts of four blocks, saved by the transformers under test."""
    from tiny_models import tiny_mixture

    return tiny_mixture(tmp_path_factory.mktemp("mixture"))
