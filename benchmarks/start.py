"""How long a user waits for the command line: a fresh process for each start.

    python benchmarks/start.py [--rounds 7] [--format json]

Budget: at most 0.5 s for `driftpin --help` and `driftpin replays` (here on an empty SQLite store). The start of a bare
Python is measured between them, for comparison.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from _bench import Line, parser, report, seconds

BUDGET = 0.5


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
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(given.rounds):
            for name, command in commands.items():
                times[name].append(
                    seconds(lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True))  # noqa: B023
                )
    lines = [
        Line(what=name, measured=min(values), unit="s", budget=BUDGET if "driftpin" in name else None)
        for name, values in times.items()
    ]
    report(lines, given.format)


if __name__ == "__main__":
    main()
