"""A tokenizer that only one of the major versions reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import transformers
from pair_suite import CHAT, engine
from tiny_models import SPECIAL, TEMPLATE

from driftpin.errors import ModelError


def test_a_tokenizer_saved_by_version_5_says_so_in_version_4(llama_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "newer"
    shutil.copytree(llama_folder, folder)
    settings = {"tokenizer_class": "TokenizersBackend", "extra_special_tokens": [SPECIAL[1]], "eos_token": SPECIAL[2]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": TEMPLATE}))
    if transformers.__version__.startswith("5."):
        assert engine(folder).render(CHAT, None).ids == engine(llama_folder).render(CHAT, None).ids
        return
    with pytest.raises(ModelError) as caught:
        engine(folder)
    assert "run it where transformers 5 is" in (caught.value.remedy or "")
