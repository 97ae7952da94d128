"""What recording costs over plain `generate`: wall time, kernel-launching operations, and peak memory, side by side.

    python benchmarks/recording_overhead.py [MODEL_FOLDER] [--dtype bfloat16] [--tokens 64] [--rounds 5] [--format json]

Budget: at most 1.10 x wall, 10 % more operations, 1.10 x peak memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _bench import Line, parser, report
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, AutoTokenizer

from driftpin.trace.probe import Arm, Shape
from runner.demo_weights import ensure_smollm2
from runner.engines.batching import Vocabulary
from runner.engines.bench import Bench, decode

PROMPT = 64  # tokens
BUDGET = {"wall": 1.10, "operations": 1.10, "memory": 1.10}
LAUNCH_NOTHING = ("aten.empty", "aten.new_empty", "aten.detach", "aten.alias", "aten._unsafe_view", "aten.lift")


class Counter(TorchDispatchMode):
    """Counts dispatched operations that compute or copy; views and bare allocations launch nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func.is_view and not str(func).startswith(LAUNCH_NOTHING):
            self.count += 1
        return func(*args, **(kwargs or {}))


def default_folder(dtype: str) -> Path:
    return ensure_smollm2(dtype)


def load(folder: Path, dtype: str, device: str) -> Bench:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval().to(device)
    model.generation_config.eos_token_id = None
    size = min(model.config.vocab_size, len(AutoTokenizer.from_pretrained(folder)))
    return Bench(model=model, arm=Arm.NATIVE, vocabulary=Vocabulary.of(size, (0, 1, 2), 0), ends=frozenset())


def variants(bench: Bench, tokens: int) -> dict[str, Callable[[], Any]]:
    ids = bench.vocabulary.filler(0, PROMPT)
    arguments = {"max_new_tokens": tokens, "do_sample": False, "pad_token_id": 0}
    batch = bench.batch(ids, Shape.ALONE)
    return {
        "plain": lambda: bench.generate(batch, arguments),
        "recorded": lambda: decode(bench, ids, Shape.ALONE, arguments),
    }


def seconds(action: Callable[[], Any]) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    action()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def operations(action: Callable[[], Any]) -> int:
    with Counter() as counter:
        action()
    return counter.count


def peak_bytes(options: argparse.Namespace, variant: str) -> int:
    """Peak resident memory of a fresh process that runs only `variant`."""
    command = [sys.executable, __file__, str(options.folder), "--dtype", options.dtype, "--device", options.device]
    given = ["--tokens", str(options.tokens), "--threads", str(options.threads), "--child", variant]
    done = subprocess.run(command + given, check=True, capture_output=True, text=True)
    return int(done.stdout.strip().splitlines()[-1])


def high_water() -> int:
    """Peak resident bytes of this process since its mark was last cleared."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    runs = variants(load(options.folder, options.dtype, options.device), options.tokens)
    for action in runs.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, action in runs.items():
            times[name].append(seconds(action))
    counts = {name: operations(action) for name, action in runs.items()}
    memory = {name: peak_bytes(options, name) for name in runs}
    best = {name: min(values) for name, values in times.items()}  # what disturbs a run only ever slows it
    return {
        "model": options.folder.name,
        "dtype": options.dtype,
        "device": options.device,
        "tokens": options.tokens,
        "seconds": best,
        "operations": counts,
        "peak_bytes": memory,
        "ratio": {
            "wall": best["recorded"] / best["plain"],
            "operations": counts["recorded"] / counts["plain"],
            "memory": memory["recorded"] / memory["plain"],
        },
    }


def model_parser(text: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark that runs a model."""
    given = parser(text)
    given.add_argument("folder", nargs="?", type=Path)
    given.add_argument("--dtype", default="bfloat16")
    given.add_argument("--device", default="cpu")
    given.add_argument("--tokens", type=int, default=64)
    given.add_argument("--rounds", type=int, default=5)
    given.add_argument("--threads", type=int, default=torch.get_num_threads())
    return given


def main() -> None:
    given = model_parser(__doc__)
    given.add_argument("--child", choices=["plain", "recorded"], help=argparse.SUPPRESS)
    options = given.parse_args()
    options.folder = options.folder or default_folder(options.dtype)
    torch.set_num_threads(options.threads)
    if options.child:
        action = variants(load(options.folder, options.dtype, options.device), options.tokens)[options.child]
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading
        action()
        print(high_water())
        return
    facts = measure(options)
    ratios = facts.pop("ratio").items()
    report(
        [Line(what=f"recorded over plain, {n}", measured=r, unit="x", budget=BUDGET[n]) for n, r in ratios],
        options.format,
        **facts,
    )


if __name__ == "__main__":
    main()
