"""How long a user waits for the command line: a fresh process for each start.

    python benchmarks/start.py [--rounds 7] [--format json]

Budget: at most 0.5 s for `driftpin --help` and `driftpin replays` (here on an empty SQLite store). The start of a bare
Python is measured between them, for comparison. Processor time is shown too: on a busy machine it says more.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from _bench import Line, parser, report, seconds

BUDGET = 0.5


def start(command: list[str], folder: str) -> tuple[float, float]:
    """Wall and processor time of one process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    tool = str(Path(sys.executable).with_name("driftpin"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "driftpin --help": [tool, "--help"],
        "driftpin replays": [tool, "replays"],
    }
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tool, "init"], cwd=folder, check=True, capture_output=True)
        subprocess.run([tool, "db", "upgrade"], cwd=folder, check=True, capture_output=True)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(given.rounds):
            for name, command in commands.items():
                times[name].append(start(command, folder))
    lines = []
    for name, pairs in times.items():
        wall, processor = (min(values) for values in zip(*pairs, strict=True))
        budget = BUDGET if "driftpin" in name else None
        lines.append(Line(what=name, measured=wall, unit="s", budget=budget))
        lines.append(Line(what=f"{name}, processor time", measured=processor, unit="s"))
    report(lines, given.format)


if __name__ == "__main__":
    main()
