"""Facts about an NVIDIA GPU, from torch and from NVML (nvidia-ml-py), for the very card that torch uses.

NVML numbers cards its own way, so the card is found by its UUID. Every reading is guarded by itself: an old driver
lacks some. Clocks, temperature and counters change by the minute and are context.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pynvml  # type: ignore[import-untyped]
import torch

from driftpin.environment.fact import Fact, Unknown
from runner.capture.reading import known_or_unknown


def gpu_facts(device: torch.device) -> dict[str, Fact]:
    """Stack facts: model name, SM count, compute capability, MIG and ECC mode, driver and libcuda as loaded."""
    properties = torch.cuda.get_device_properties(device)
    facts: dict[str, Fact] = {
        "device.name": properties.name,
        "device.sm_count": properties.multi_processor_count,
        "device.capability": f"{properties.major}.{properties.minor}",
        "driver.libcuda": known_or_unknown(_libcuda_version),
    }
    readers: dict[str, Callable[[Any], Any]] = {
        "device.mig": _mig,
        "device.ecc": lambda card: bool(pynvml.nvmlDeviceGetEccMode(card)[0]),
        "driver.version": lambda _card: pynvml.nvmlSystemGetDriverVersion(),
    }
    return facts | _from_nvml(device, readers)


def gpu_class(facts: dict[str, Fact]) -> str:
    """Like "cuda:NVIDIA-H200:sm9.0:132sms:mig=off:ecc=on"; what cannot be read stands as "?"."""
    words = {None: "none", True: "on", False: "off"}
    modes = {m: facts[f"device.{m}"] for m in ("mig", "ecc")}
    shown = {m: "?" if isinstance(f, Unknown) else words[f] for m, f in modes.items()}
    name = str(facts["device.name"]).replace(" ", "-")
    size = f"sm{facts['device.capability']}:{facts['device.sm_count']}sms"
    return f"cuda:{name}:{size}:mig={shown['mig']}:ecc={shown['ecc']}"


def gpu_context(device: torch.device) -> dict[str, Fact]:
    """UUID, VBIOS, memory in bytes; under `now.` clocks in MHz, temperature in degrees Celsius, ECC counters."""
    corrected, uncorrected = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    readers: dict[str, Callable[[Any], Any]] = {
        "gpu.uuid": pynvml.nvmlDeviceGetUUID,
        "gpu.vbios": pynvml.nvmlDeviceGetVbiosVersion,
        "gpu.memory": lambda card: int(pynvml.nvmlDeviceGetMemoryInfo(card).total),
        "gpu.power_limit_mw": pynvml.nvmlDeviceGetPowerManagementLimit,
        "now.gpu.sm_mhz": lambda card: pynvml.nvmlDeviceGetClockInfo(card, pynvml.NVML_CLOCK_SM),
        "now.gpu.memory_mhz": lambda card: pynvml.nvmlDeviceGetClockInfo(card, pynvml.NVML_CLOCK_MEM),
        "now.gpu.celsius": lambda card: pynvml.nvmlDeviceGetTemperature(card, pynvml.NVML_TEMPERATURE_GPU),
        "now.gpu.ecc_corrected": lambda card: _ecc_total(card, corrected),
        "now.gpu.ecc_uncorrected": lambda card: _ecc_total(card, uncorrected),
    }
    return _from_nvml(device, readers)


def _from_nvml(device: torch.device, readers: dict[str, Callable[[Any], Any]]) -> dict[str, Fact]:
    try:
        with _card(device) as card:
            return {name: _read(reader, card) for name, reader in readers.items()}
    except (pynvml.NVMLError, AttributeError) as error:
        return dict.fromkeys(readers, Unknown(f"NVML does not find the device: {error}"))


@contextmanager
def _card(device: torch.device) -> Iterator[Any]:
    pynvml.nvmlInit()
    try:
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        yield pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
    finally:
        pynvml.nvmlShutdown()


def _read(reader: Callable[[Any], Any], card: Any) -> Fact:
    try:
        value = reader(card)
    except pynvml.NVMLError as error:
        return Unknown(f"NVML: {error}")
    return value.decode() if isinstance(value, bytes) else value


def _mig(card: Any) -> bool | None:
    """On or off; None where the model has no such mode."""
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(card)[0])
    except pynvml.NVMLError_NotSupported:
        return None


def _ecc_total(card: Any, kind: int) -> int:
    return int(pynvml.nvmlDeviceGetTotalEccErrors(card, kind, pynvml.NVML_AGGREGATE_ECC))


def _libcuda_version() -> str:
    """The version that the libcuda in this process tells, like "13.0"; raises OSError without one."""
    number = ctypes.c_int()
    status = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    if status != 0:
        raise OSError(f"cuDriverGetVersion returned {status}")
    return f"{number.value // 1000}.{number.value % 1000 // 10}"
