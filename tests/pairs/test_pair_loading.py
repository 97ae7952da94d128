"""What one major version of transformers writes and the other does not read."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import transformers
from pair_suite import CHAT, LONG, decode, engine
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


@pytest.mark.parametrize(
    ("rotary", "says"),
    [
        ({"rope_type": "default", "rope_theta": 500000.0}, "rope_theta = 500000.0"),
        ({"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}, "rope_type = 'linear'"),
    ],
)
def test_rotary_parameters_of_version_5_are_not_overlooked_in_version_4(
    llama_folder: Path, tmp_path: Path, rotary: dict[str, object], says: str
) -> None:
    folder = tmp_path / "newer"
    shutil.copytree(llama_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    older = {name: value for name, value in config.items() if name not in ("rope_theta", "rope_scaling")}
    (folder / "config.json").write_text(json.dumps(older | {"rope_parameters": rotary}))
    if transformers.__version__.startswith("5."):
        assert tokens(folder) != tokens(llama_folder)  # it acts
        return
    with pytest.raises(ModelError, match=re.escape(says)):
        engine(folder)
    scaling = {"rope_type": "linear", "factor": 2.0} if rotary["rope_type"] == "linear" else None
    both = {"rope_parameters": rotary, "rope_theta": rotary["rope_theta"], "rope_scaling": scaling}
    (folder / "config.json").write_text(json.dumps(older | both))
    assert tokens(folder) != tokens(llama_folder)


def tokens(folder: Path) -> list[int]:
    return decode(engine(folder), LONG).head.output_ids.tolist()
