"""Facts about libraries, mapped objects, variables, CPU, GPU and image, on this machine and on made-up ones."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest
import torch

from driftpin.environment import Unknown
from driftpin.settings.recipe import Recipe
from runner.capture import device_class, gpu, isa
from runner.capture.cpu import cpu_class, flags
from runner.capture.flags import flag_facts
from runner.capture.image import image_facts
from runner.capture.libraries import library_facts, other_packages, record_digest
from runner.capture.objects import mapped, object_facts
from runner.capture.variables import placement_facts, variable_facts

TOLD = (
    "MKL_VERBOSE oneMKL 2024.0 for Intel(R) 64 architecture Intel(R) AVX2, Lnx 2.60GHz lp64\n"
    "onednn_verbose,v1,info,cpu,isa:Intel AVX2\n"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIFTPIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_libraries_of_this_process() -> None:
    facts = library_facts()
    assert facts["library.torch"] == importlib.metadata.version("torch")
    assert facts["library.torch.local"] == torch.__version__.partition("+")[2]
    assert facts["library.torch.git"] == torch.version.git_version
    assert len(facts["library.torch.record"]) == 64
    assert facts["library.transformers"] == importlib.metadata.version("transformers")
    assert "library.pytest" not in facts
    assert other_packages()["pytest"] == importlib.metadata.version("pytest")


def test_a_record_counts_what_was_shipped_not_how_it_was_installed() -> None:
    shipped = "torch/a.so,sha256=x,1\ntorch/b.py,sha256=y,2\n"
    noise = [
        "torch/__pycache__/b.cpython-311.pyc,,",
        "../../../bin/torchrun,sha256=z,3",
        "torch-2.dist-info/INSTALLER,sha256=q,4",
    ]
    assert record_digest(shipped) == record_digest("\n".join([*noise, shipped]))
    assert record_digest(shipped) != record_digest(shipped.replace("=x", "=w"))
    assert isinstance(record_digest(None), Unknown)


def test_mapped_objects_of_this_process() -> None:
    facts = object_facts()
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    assert facts["object.libc10.so"] == hashlib.sha256(library.read_bytes()).hexdigest()
    assert "object.libtorch_cpu.so" in facts
    assert not [name for name in facts if "ssl" in name or "python3" in name]


def test_objects_are_chosen_by_name_and_a_replaced_one_is_unknown(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "libgomp.so.1", tmp_path / "b" / "libgomp.so.1"
    for path in (one, two):
        path.parent.mkdir()
        path.write_bytes(path.parent.name.encode())
    lines = [f"7f-80 r-xp 00000000 08:01 12 {p}" for p in (one, one, two, "/lib/libssl.so.3", "/x/libm.so.6 (deleted)")]
    lines.append("7f-80 rw-p 00000000 00:00 0")
    maps = tmp_path / "maps"
    maps.write_text("\n".join(lines))
    assert mapped(maps.read_text()) == sorted([str(one), str(two), "/x/libm.so.6 (deleted)"])
    facts = object_facts(maps)
    assert facts["object.libgomp.so.1"] == sorted(hashlib.sha256(c).hexdigest() for c in (b"a", b"b"))
    assert isinstance(facts["object.libm.so.6"], Unknown)


def test_no_memory_map_is_unknown(tmp_path: Path) -> None:
    assert isinstance(object_facts(tmp_path / "none")["object"], Unknown)


def test_variables_have_three_states_and_secrets_stay_hidden() -> None:
    environ = {
        "OMP_NUM_THREADS": "",
        "MKL_CBWR": "AVX2",
        "KMP_AFFINITY": "compact",
        "HF_TOKEN": "secret",
        "HF_HOME": "somewhere",
        "TORCH_API_KEY": "secret",
        "CUDA_VISIBLE_DEVICES": "3",
        "PATH": "x",
    }
    facts = variable_facts(environ)
    assert facts["variable.OMP_NUM_THREADS"] == ""
    assert facts["variable.MKL_CBWR"] == "AVX2"
    assert facts["variable.KMP_AFFINITY"] == "compact"
    assert facts["variable.ONEDNN_MAX_CPU_ISA"] is None
    assert not {
        f"variable.{n}" for n in ("HF_TOKEN", "HF_HOME", "TORCH_API_KEY", "CUDA_VISIBLE_DEVICES", "PATH")
    } & set(facts)
    assert "secret" not in str(facts)
    assert placement_facts(environ) == {"placement.CUDA_VISIBLE_DEVICES": "3"}


def test_a_cpu_class_names_model_and_telling_instruction_sets() -> None:
    intel = {"vendor_id": "GenuineIntel", "cpu family": "6", "model": "85", "flags": "fpu sse2 smep avx2 fma avx512f"}
    assert cpu_class(intel) == "cpu:GenuineIntel-6-85:avx2,avx512f"
    assert flags(intel) == ["avx2", "avx512f", "fma"]
    arm = {"CPU implementer": "0x41", "CPU part": "0xd40", "CPU variant": "0x1", "Features": "fp asimd sve bf16"}
    assert cpu_class(arm) == "cpu:0x41-0xd40-0x1:sve,bf16"
    assert cpu_class({}).startswith("cpu:")


def test_the_device_class_of_this_machine_is_stable() -> None:
    recipe = Recipe(engine="transformers", model="m")
    assert device_class(recipe) == device_class(recipe)
    assert device_class(recipe).startswith("cpu:")


def test_flags_are_read_back_as_they_are_now() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    try:
        torch.use_deterministic_algorithms(True)
        assert flag_facts(cpu=True)["flag.deterministic_algorithms"] is True
        torch.use_deterministic_algorithms(False)
        assert flag_facts(cpu=True)["flag.deterministic_algorithms"] is False
    finally:
        torch.use_deterministic_algorithms(before)
    assert flag_facts(cpu=True)["flag.threads"] == torch.get_num_threads()
    assert "flag.threads" not in flag_facts(cpu=False)


def test_an_image_names_its_lock() -> None:
    digest = "ab" * 32
    assert image_facts({}) == {}
    assert image_facts({"DRIFTPIN_IMAGE_LOCK": f"sha256:{digest}"}) == {"image.lock": digest}
    assert isinstance(image_facts({"DRIFTPIN_IMAGE_LOCK": "latest"})["image.lock"], Unknown)


def test_the_verbose_run_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []

    def run(*args: object, **kwargs: object) -> SimpleNamespace:
        runs.append(kwargs)
        return SimpleNamespace(stdout=TOLD, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    for library in (torch.backends.mkldnn, torch.backends.mkl):
        monkeypatch.setattr(library, "is_available", lambda: True)
    first, second = isa.isa_facts(), isa.isa_facts()
    assert first == second
    assert first["isa.mkl"] == "Intel(R) AVX2"
    assert first["isa.onednn"] == "Intel AVX2"
    assert len(runs) == 1
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    isa.isa_facts()
    assert len(runs) == 2


def test_a_failed_verbose_run_is_unknown_and_tried_again(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(isa.sys, "executable", "/nowhere/python")
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    assert isinstance(isa.isa_facts()["isa.onednn"], Unknown)
    assert not (cache / "isa").exists()


def test_a_library_that_is_not_built_in_is_no_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in (torch.backends.mkldnn, torch.backends.mkl):
        monkeypatch.setattr(library, "is_available", lambda: False)
    facts = isa.isa_facts()
    assert (facts["isa.onednn"], facts["isa.mkl"]) == (None, None)


def fake_card(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    properties = SimpleNamespace(name="NVIDIA H200", multi_processor_count=132, major=9, minor=0, uuid="1234")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: properties)
    monkeypatch.setattr(gpu, "_libcuda_version", lambda: "13.0")
    for name, result in {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlSystemGetDriverVersion": "580.95",
        "nvmlDeviceGetUUID": b"GPU-1234",
    }.items():
        monkeypatch.setattr(pynvml, name, lambda *_args, result=result: result)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", asked.append)


def unsupported(*_args: object) -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def test_a_gpu_is_found_by_its_uuid_and_named_by_what_changes_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    fake_card(monkeypatch, asked)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMigMode", unsupported)
    facts = gpu.gpu_facts(torch.device("cuda:0"))
    assert asked == ["GPU-1234"]
    assert gpu.gpu_class(facts) == "cuda:NVIDIA-H200:sm9.0:132sms:mig=none:ecc=on"
    assert (facts["driver.version"], facts["driver.libcuda"]) == ("580.95", "13.0")


def test_each_nvml_reading_fails_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_card(monkeypatch, [])
    for name in [n for n in dir(pynvml) if n.startswith("nvmlDeviceGet") and n not in KEPT]:
        monkeypatch.setattr(pynvml, name, unsupported)
    context = gpu.gpu_context(torch.device("cuda:0"))
    assert context["gpu.uuid"] == "GPU-1234"
    assert isinstance(context["now.gpu.sm_mhz"], Unknown)


KEPT = ("nvmlDeviceGetUUID", "nvmlDeviceGetHandleByUUID")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has NVML")
def test_without_nvml_its_facts_are_unknown() -> None:
    facts = gpu._from_nvml(torch.device("cuda:0"), {"device.ecc": lambda card: card})
    assert isinstance(facts["device.ecc"], Unknown)
