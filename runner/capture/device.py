"""The device that a recipe runs on: its class, its facts, its context. Knows no model."""

from __future__ import annotations

import torch

from driftpin.environment.fact import Fact
from driftpin.settings.recipe import Recipe
from runner.capture.cpu import cpu_class, cpuinfo, flags
from runner.loading import device_of


def device_class(recipe: Recipe) -> str:
    """A short stable name of the kind of device; equal names may share a baseline. Raises `CannotMeasureError`."""
    device = device_of(recipe)
    return str(device_facts(device)["device.class"])


def device_facts(device: torch.device) -> dict[str, Fact]:
    """Stack facts: `device.class`, and what it is made of."""
    if device.type == "cpu":
        info = cpuinfo()
        return {"device.class": cpu_class(info), "device.isa": flags(info)}
    from runner.capture import gpu  # noqa: PLC0415 - NVML only where there is a card

    facts = gpu.gpu_facts(device)
    return {"device.class": gpu.gpu_class(facts)} | facts


def device_context(device: torch.device) -> dict[str, Fact]:
    """What identifies or describes the single device, unhashed."""
    info = cpuinfo()
    context: dict[str, Fact] = {f"cpu.{n}": info[f] for n, f in CPU_CONTEXT.items() if f in info}
    if device.type == "cpu":
        return context
    from runner.capture import gpu  # noqa: PLC0415

    return context | gpu.gpu_context(device)


CPU_CONTEXT = {"name": "model name", "stepping": "stepping", "microcode": "microcode"}
