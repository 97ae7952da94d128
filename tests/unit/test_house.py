"""The house rules that a machine can check: sizes, docstrings, prints, addresses, and who may import torch."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("driftpin", "runner", "monitor", "benchmarks", "scripts")
LONGEST_FUNCTION, LONGEST_FILE, MEDIAN_FUNCTION = 60, 400, 10  # lines
MAY_PRINT = ("driftpin/cli/", "benchmarks/", "scripts/")
HEAVY = ("torch", "transformers", "accelerate", "safetensors", "gguf", "scipy")

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Put together from parts, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:" + "|".join(("work", "home", "root", "Users", r"opt/wheels")) + r")/\w")
REGISTRY = re.compile(
    "|".join((r"py" + r"pi\.org", r"python" + r"hosted\.org", r"download[\w.-]*\.py" + r"torch\.org"))
)


def python_files() -> list[Path]:
    files = [path for room in PRODUCT for path in sorted((ROOT / room).rglob("*.py"))]
    assert len(files) > 20
    return files


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name with place, and lines from `def` to the end less the docstring."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", length(node)


def length(node: Function) -> int:
    first = node.body[0]
    is_doc = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    doc = (first.end_lineno or 0) - first.lineno + 1 if is_doc else 0
    return (node.end_lineno or 0) - node.lineno + 1 - doc


def tracked_texts() -> Iterator[tuple[str, str]]:
    """Files that git tracks, as text; generated locks are looked at for addresses too."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        data = path.read_bytes() if path.is_file() else b""
        if b"\0" not in data:
            yield name, data.decode()


def test_length_counts_from_def_to_end_without_the_docstring() -> None:
    tree = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    a = 1\n    return a\n')
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    assert length(node) == 3


def test_no_function_is_longer_than_the_limit() -> None:
    long = [name for path in python_files() for name, lines in functions(path) if lines > LONGEST_FUNCTION]
    assert long == []


def test_the_median_function_is_short() -> None:
    assert statistics.median(lines for path in python_files() for _, lines in functions(path)) <= MEDIAN_FUNCTION


def test_no_file_is_longer_than_the_limit() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in python_files()}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_every_module_says_what_it_is() -> None:
    modules = [path for path in python_files() if path.read_text().strip()]
    assert [str(p.relative_to(ROOT)) for p in modules if not ast.get_docstring(ast.parse(p.read_text()))] == []


def test_only_the_command_line_and_tools_print() -> None:
    printing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in python_files()
        if not str(path.relative_to(ROOT)).startswith(MAY_PRINT)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


@pytest.mark.parametrize("found", ["see /wo" + "rk/main/x", "'/ho" + "me/me/model'", "https://py" + "pi.org/simple"])
def test_the_patterns_find_what_they_are_for(found: str) -> None:
    assert MACHINE_PATH.search(found) or REGISTRY.search(found)


def test_no_tracked_file_names_a_machine_path_or_a_registry() -> None:
    hits = [
        f"{name}: {match.group(0)}"
        for name, text in tracked_texts()
        for pattern in (MACHINE_PATH, REGISTRY)
        for match in pattern.finditer(text)
    ]
    assert hits == []


def test_locks_hold_a_hash_for_every_package() -> None:
    for lock in (ROOT / "locks").glob("*.txt"):
        starts = re.split(r"^(?=[a-z0-9])", lock.read_text(), flags=re.MULTILINE)[1:]
        assert starts, lock.name
        assert [s.splitlines()[0] for s in starts if "==" not in s or "--hash=sha256:" not in s] == []


@pytest.mark.parametrize("module", ["driftpin.cli", "monitor"])
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_module_of_kernel_and_monitor_loads_without_torch() -> None:
    """Not only what the CLI happens to import at start: a heavy import at the top of any module counts."""
    rooms = [ROOT / "driftpin", ROOT / "monitor"]
    names = [module_name(path) for room in rooms for path in sorted(room.rglob("*.py")) if path.name != "__main__.py"]
    code = f"import sys, importlib\nfor n in {names!r}: importlib.import_module(n)\n"
    code += f"print([m for m in {HEAVY[:-1]!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
