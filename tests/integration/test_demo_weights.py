"""The demonstration weights: converted, checked, remade when damaged. The real package is used for the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from driftpin.errors import ModelError
from driftpin.settings.recipe import Recipe
from driftpin.trace.probe import Arm
from runner import demo_weights
from runner.demo_weights import ensure_smollm2, is_whole, source_file
from runner.gguf_llama import GgufLlama, hugging_face_name, unpermute
from runner.gguf_weights import check_weights
from runner.loading import load_model


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFTPIN_CACHE", str(tmp_path_factory.mktemp("cache")))
        return ensure_smollm2("bfloat16")


def test_every_tensor_is_the_source_rounded_to_bfloat16(real: Path) -> None:
    stored = load_file(real / "model.safetensors")
    reader = gguf.GGUFReader(source_file())
    assert set(stored) == {hugging_face_name(t.name) for t in reader.tensors}
    assert len(stored) == 272
    tensor = next(t for t in reader.tensors if t.name == "blk.7.ffn_up.weight")
    values = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
    assert torch.equal(stored["model.layers.7.mlp.up_proj.weight"], values.to(torch.bfloat16))


def test_the_check_finds_a_single_wrong_bit(real: Path, tmp_path: Path) -> None:
    data = bytearray((real / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match="was not written as it was read"):
        check_weights(GgufLlama(source_file()), tmp_path / "model.safetensors", "bfloat16", lambda *_: None)


def test_the_model_knows_the_capital_of_france(real: Path) -> None:
    loaded = load_model(Recipe(engine="transformers", model="smol", path=str(real), dtype="bfloat16"), Arm.NATIVE)
    assert loaded.unexpected_keys == ()
    ids = loaded.tokenizer("The capital of France is", return_tensors="pt").input_ids
    assert loaded.tokenizer.decode(loaded.model(ids).logits[0, -1].argmax()) == " Paris"
    assert loaded.tokenizer.eos_token_id == loaded.model.generation_config.eos_token_id == 2
    chat = loaded.tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize(
    "text", ["2023", "in   2023", " 12\t34\n", "👩‍🚀 émoji 漢字", "  lead", "def f():\n    return 1"]
)
def test_text_survives_the_tokenizer(real: Path, text: str) -> None:
    tokenizer = Tokenizer.from_file(str(real / "tokenizer.json"))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_digits_are_single_tokens_and_blanks_before_them_stay_together(real: Path) -> None:
    tokenizer = Tokenizer.from_file(str(real / "tokenizer.json"))
    assert tokenizer.encode("2023").tokens == ["2", "0", "2", "3"]
    assert tokenizer.encode("   20").tokens == ["ĠĠĠ", "2", "0"]
    assert tokenizer.encode("<|im_start|>user").ids[0] == 1


def test_a_second_call_converts_nothing_and_leaves_no_scratch(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTPIN_CACHE", str(real.parent.parent))
    monkeypatch.setattr(demo_weights, "convert", forbidden)
    assert ensure_smollm2("bfloat16") == real
    assert not [path.name for path in real.parent.iterdir() if path.name.startswith(".new-")]


def forbidden(*_args: object) -> None:
    raise AssertionError("nothing was to be converted")


def test_undoing_the_permutation_of_llama_cpp() -> None:
    heads, rows = 3, 24
    original = np.arange(rows * 5, dtype=np.float32).reshape(rows, 5)
    permuted = original.reshape(heads, 2, rows // heads // 2, 5).swapaxes(1, 2).reshape(rows, 5)  # its `permute`
    assert not np.array_equal(permuted, original)
    assert np.array_equal(unpermute(permuted, heads), original)


# From here on a conversion that takes no time: what is tested is when it happens.


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    source = tmp_path / "source.gguf"
    source.write_bytes(b"source")

    def convert(_source: Path, folder: Path, dtype: str, _progress: object) -> None:
        made.append(dtype)
        (folder / "model.safetensors").write_bytes(b"numbers")

    monkeypatch.setenv("DRIFTPIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo_weights, "source_file", lambda: source)
    monkeypatch.setattr(demo_weights, "convert", convert)
    return made


DAMAGE = {
    "same size": lambda f: (f / "model.safetensors").write_bytes(b"Numbers"),
    "truncated": lambda f: (f / "model.safetensors").write_bytes(b"num"),
    "removed": lambda f: (f / "model.safetensors").unlink(),
    "manifest": lambda f: (f / "driftpin-manifest.json").write_text("{"),
    "manifest of another shape": lambda f: (f / "driftpin-manifest.json").write_text("[1]"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_noticed_and_remade(quick: list[str], damage: str) -> None:
    folder = ensure_smollm2("float32")
    assert ensure_smollm2("float32") == folder
    assert quick == ["float32"]
    DAMAGE[damage](folder)
    assert ensure_smollm2("float32") == folder
    assert quick == ["float32", "float32"]
    assert (folder / "model.safetensors").read_bytes() == b"numbers"
    assert [path.name for path in folder.parent.iterdir() if not path.name.endswith(".lock")] == [folder.name]


def test_another_source_makes_another_model(quick: list[str], tmp_path: Path) -> None:
    folder = ensure_smollm2("bfloat16")
    (tmp_path / "source.gguf").write_bytes(b"a newer package")
    assert not is_whole(folder, tmp_path / "source.gguf")
    ensure_smollm2("bfloat16")
    assert len(quick) == 2


def test_an_interrupt_leaves_nothing_behind(quick: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(_source: Path, folder: Path, _dtype: str, _progress: object) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_weights, "convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ensure_smollm2("float32")
    left = [path.name for path in (tmp_path / "cache" / "models").iterdir()]
    assert all(name.endswith(".lock") for name in left)


def test_a_full_disk_gives_a_sentence(quick: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo_weights, "convert", full)
    with pytest.raises(ModelError, match=r"No space left.*DRIFTPIN_CACHE"):
        ensure_smollm2("float32")


def test_another_dtype_is_refused() -> None:
    with pytest.raises(ModelError, match="float32 and bfloat16, not in float16"):
        ensure_smollm2("float16")


def test_a_missing_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_weights, "DISTRIBUTION", "no-such-distribution")
    assert demo_weights.main(["--dtype", "bfloat16"]) == 2
    assert "make setup" in capsys.readouterr().err


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"nothing of the kind" * 10)
    with pytest.raises(ModelError, match=r"x\.gguf cannot be read as GGUF"):
        GgufLlama(tmp_path / "x.gguf")


def test_the_manifest_lists_every_file(real: Path) -> None:
    manifest = json.loads((real / "driftpin-manifest.json").read_text())
    assert set(manifest["files"]) == {path.name for path in real.iterdir()} - {"driftpin-manifest.json"}
