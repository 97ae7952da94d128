"""How much memory a model may take, and giving it back: kernel, control groups, allocator. Knows no model."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import torch

from driftpin.errors import CannotMeasureError
from runner.engines.reference import Room

ROOT = Path("/")
V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"  # where the two versions of control groups are mounted
FILES = {V2: ("memory.max", "memory.current"), V1: ("memory.limit_in_bytes", "memory.usage_in_bytes")}
RECLAIMABLE = "inactive_file"  # pages of files that the kernel drops when memory is asked for


def room_on(device: torch.device) -> Room:
    """Of the CPU what is free now, of an accelerator all it has; `CannotMeasureError` where neither can be read."""
    if device.type == "cuda":
        size = int(torch.cuda.get_device_properties(device).total_memory)
        return Room(size=size, of=f"total memory of {device}")
    return cpu_room()


def cpu_room(root: Path = ROOT) -> Room:
    """The smallest of what the machine and this process's control groups leave; `root` is where /proc and /sys are."""
    rooms = [Room(size=_available(root), of="available memory"), *_group_rooms(root)]
    return min(rooms, key=lambda room: room.size)


def give_back() -> None:
    """Hand freed memory to the kernel: glibc keeps what loading threads freed, 5 MiB of a 14 MiB block (measured)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's alone
    if trim is not None:
        trim(0)


def _available(root: Path) -> int:
    try:
        lines = (root / "proc/meminfo").read_text("ascii").splitlines()
        (kib,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return int(kib) * 1024
    except (OSError, ValueError) as error:
        message = f"How much memory is available cannot be read: {error}."
        raise CannotMeasureError(message, remedy='Say options = { reference = "whole" } if it suffices.') from error


def _group_rooms(root: Path) -> Iterator[Room]:
    """What each limited group that this process is in has left, its ancestors included."""
    for mount, (limit_file, usage_file) in FILES.items():
        for folder in _folders(root, mount):
            limit, usage = _number(folder / limit_file), _number(folder / usage_file)
            if limit is not None and usage is not None:
                left = max(0, limit - usage + _reclaimable(folder))
                yield Room(size=left, of="memory that the control group leaves")


def _folders(root: Path, mount: str) -> Iterator[Path]:
    """A container usually sees its own group as the mount's root, whatever path /proc names: both are looked at."""
    path = PurePosixPath(_group_path(root, mount) or "/").relative_to("/")
    yield from (root / mount / part for part in (path, *path.parents))


def _group_path(root: Path, mount: str) -> str | None:
    """Lines of /proc/self/cgroup are `hierarchy:controllers:path`; version 2 has one with hierarchy 0."""
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return None
    fields = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    mine = ((h == "0" and not c) if mount == V2 else "memory" in c.split(",") for h, c, _ in fields)
    return next((path for (_, _, path), found in zip(fields, mine, strict=True) if found), None)


def _number(path: Path) -> int | None:
    """None where there is no such file, or no limit in it ("max")."""
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _reclaimable(folder: Path) -> int:
    try:
        lines = (folder / "memory.stat").read_text("ascii").splitlines()
    except OSError:
        return 0
    fields = dict(line.split(maxsplit=1) for line in lines if " " in line)
    return int(fields.get(f"total_{RECLAIMABLE}", fields.get(RECLAIMABLE, 0)))
