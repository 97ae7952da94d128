"""How much memory there is, from files as kernels write them; which way a reference runs in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftpin.environment.environment import Environment
from driftpin.environment.fact import Unknown
from driftpin.environment.reference import reference_label
from driftpin.errors import CannotMeasureError
from driftpin.settings.recipe import Recipe
from runner.engines.reference import Room, Way, asked_way, choose
from runner.memory import cpu_room

GIB = 2**30
UNLIMITED_V1 = 9223372036854771712


def machine(root: Path, cgroup: str, files: dict[str, str], available_kib: int = 8 * 2**20) -> Path:
    """A root with /proc and /sys of a machine that has 8 GiB available."""
    meminfo = f"MemTotal: 16777216 kB\nMemAvailable: {available_kib} kB\nBuffers: 1 kB\n"
    for name, text in {"proc/meminfo": meminfo, "proc/self/cgroup": cgroup, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def v2(folder: str, limit: str, usage: int, inactive: int = 0) -> dict[str, str]:
    at = f"sys/fs/cgroup/{folder}".rstrip("/")
    stat = f"anon 5\ninactive_file {inactive}\n"
    return {f"{at}/memory.max": limit, f"{at}/memory.current": str(usage), f"{at}/memory.stat": stat}


def v1(folder: str, limit: int, usage: int, inactive: int = 0) -> dict[str, str]:
    at = f"sys/fs/cgroup/memory/{folder}".rstrip("/")
    stat = f"inactive_file 7\ntotal_inactive_file {inactive}\n"
    files = {"limit_in_bytes": str(limit), "usage_in_bytes": str(usage)}
    return {f"{at}/memory.stat": stat, **{f"{at}/memory.{name}": text for name, text in files.items()}}


def test_without_control_groups_what_the_kernel_calls_available_counts(tmp_path: Path) -> None:
    assert cpu_room(machine(tmp_path, "0::/\n", {})) == Room(size=8 * GIB, of="available memory")


@pytest.mark.parametrize(
    ("cgroup", "files", "left"),
    [
        ("0::/a/b\n", v2("a/b", f"{4 * GIB}\n", GIB), 3 * GIB),
        ("0::/a/b\n", v2("a/b", f"{4 * GIB}\n", 3 * GIB, inactive=GIB), 2 * GIB),
        ("0::/a/b\n", {**v2("a/b", "max\n", GIB), **v2("a", f"{2 * GIB}\n", GIB)}, GIB),
        ("0::/../outside\n", v2("", f"{2 * GIB}\n", GIB), GIB),
        ("3:cpu:/x\n4:memory:/a\n0::/\n", v1("a", 6 * GIB, GIB, inactive=GIB // 2), 5 * GIB + GIB // 2),
        ("4:memory:/docker/abc\n", v1("", 2 * GIB, GIB), GIB),
        ("0::/a\n", v2("a", f"{GIB}\n", 2 * GIB), 0),
    ],
    ids=["limit", "caches come back", "an ancestor's limit", "own root", "version 1", "version 1, own root", "over it"],
)
def test_the_smallest_limit_counts(tmp_path: Path, cgroup: str, files: dict[str, str], left: int) -> None:
    assert cpu_room(machine(tmp_path, cgroup, files)) == Room(size=left, of="memory that the control group leaves")


@pytest.mark.parametrize(
    ("cgroup", "files"),
    [("0::/a\n", v2("a", "max\n", GIB)), ("4:memory:/a\n", v1("a", UNLIMITED_V1, GIB)), ("nonsense\n", {})],
    ids=["max", "version 1 without a limit", "an unreadable line"],
)
def test_no_limit_is_no_limit(tmp_path: Path, cgroup: str, files: dict[str, str]) -> None:
    assert cpu_room(machine(tmp_path, cgroup, files)).of == "available memory"


def test_memory_that_cannot_be_read_is_refused_with_what_to_say(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError, match=r'cannot be read.*reference = "whole"'):
        cpu_room(tmp_path)


def test_four_bytes_per_parameter_must_fit_in_four_fifths() -> None:
    room = Room(size=1000, of="a test")
    assert choose(None, 200, room).way is Way.WHOLE
    assert choose(None, 201, room).way is Way.BLOCK_BY_BLOCK
    forced = choose(Way.WHOLE, 10_000, room)
    assert (forced.way, forced.asked, forced.needed) == (Way.WHOLE, True, 40_000)


def test_the_recipe_may_ask_for_a_way() -> None:
    assert asked_way(Recipe(engine="transformers", model="m")) is None
    asked = Recipe(engine="transformers", model="m", options={"reference": "block_by_block"})
    assert asked_way(asked) is Way.BLOCK_BY_BLOCK


@pytest.mark.parametrize(
    ("weights", "label"),
    [("de-quantised from fp8", "de-quantised from fp8"), ("as stored", None), (Unknown("lost"), None), (None, None)],
    ids=str,
)
def test_a_reader_is_told_whose_values_a_reference_holds(weights: object, label: str | None) -> None:
    context = {} if weights is None else {"reference.weights": weights}
    assert reference_label(Environment(model={}, stack={}, behaviour={}, context=context)) == label
