"""What a fresh reader found: hidden text, an unblessed device class, outputs that cannot be written, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driftpin.cli.app import run
from driftpin.settings.policy import Severity
from driftpin.verdict.judge import unblessed

CONFIG = """\
[suites.s]
path = "suite.yaml"
text = "{text}"

[targets.t]
engine = "fake"
suite = "s"
options = {{ faults = {faults} }}
"""
SUITE = "name: s\ncanaries:\n  - {id: a, prompt: Once upon a time}\n  - {id: b, prompt: The sky is}\n"
DAMAGE = "{ weight = { block = 1, by = 1 } }"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    write(tmp_path, text="show", faults="{}")
    return tmp_path


def write(folder: Path, *, text: str, faults: str) -> None:
    (folder / "driftpin.toml").write_text(CONFIG.format(text=text, faults=faults))


def test_a_side_that_hides_its_text_hides_it_in_every_comparison(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, text="hide", faults="{}")
    assert run(["baseline", "bless", "t"]) == 0
    write(home, text="show", faults=DAMAGE)
    run(["replay", "t"])
    capsys.readouterr()
    assert run(["compare", "t@baseline", "t@last"]) == 1
    screen = capsys.readouterr().out
    assert "text is hidden" in screen
    assert "tokens part at output" in screen  # sizes are no text
    assert "became" not in screen
    assert run(["compare", "t@baseline", "t@last", "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)["outcomes"]
    assert all(one["why"].startswith("tokens part at output") for c in told.values() for one in c["findings"][:1])
    assert "became" not in json.dumps(told)
    write(home, text="hide", faults=DAMAGE)
    run(["show", "t@last", "--canary", "a", "--format", "json"])
    assert "rendered" not in capsys.readouterr().out


def test_another_device_class_is_a_ticket_and_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["baseline", "bless", "t"]) == 0
    write(home, text="show", faults='{ facts = { stack = { "device.class" = "other" } } }')
    capsys.readouterr()
    run(["replay", "t"])
    assert "it ran on other, its baselines are for fake" in capsys.readouterr().out
    assert unblessed("other", ("fake",)).severity is Severity.TICKET
    assert unblessed().severity is Severity.INFO


def test_an_output_that_cannot_be_written_is_an_error_and_not_drift(home: Path) -> None:
    assert run(["baseline", "bless", "t"]) == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from driftpin.cli import main; main()", "replays"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_stopped_command_says_so_and_leaves_no_worker(home: Path, number: signal.Signals) -> None:
    write(home, text="show", faults="{ slow = 5 }")
    command = [sys.executable, "-c", "from driftpin.cli import main; main()", "replay", "t"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        deadline = time.monotonic() + 60
        while not workers_of(child.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)
        (worker,) = workers_of(child.pid)
        child.send_signal(number)
        _, complaint = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "everything recorded before is kept" in complaint
    assert not Path(f"/proc/{worker}").exists()


def workers_of(parent: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split() if entry.isdigit() else ()
        except OSError:
            continue
        if fields and int(fields[1]) == parent:
            found.append(int(entry))
    return found
