"""What `--format json` really prints has exactly the keys that docs/json-shapes.md names."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from driftpin.cli import checkup
from driftpin.cli.app import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json-shapes.md"
ROWS = {"driftpin.replays/1": "replays", "driftpin.baselines/1": "baselines"}  # whose table describes a row
ELSEWHERE = "driftpin.alert/1"
STORED = "driftpin.baseline/1"  # the form of a blob, which no command prints

COMMANDS = {
    "driftpin.dry_run/1": "replay try-me --dry-run",
    "driftpin.replays/1": "replays",
    "driftpin.show/1": "show try-me@last --canary capital",
    "driftpin.compare/1": "compare try-me@baseline try-me@last",
    "driftpin.environment/1": "env show try-me@last",
    "driftpin.environment_difference/1": "env diff try-me@baseline try-me@last",
    "driftpin.baselines/1": "baseline list",
    "driftpin.suite_check/1": "suite check",
    "driftpin.config_check/1": "config check",
    "driftpin.config/1": "config show",
    "driftpin.db_size/1": "db size",
    "driftpin.db_check/1": "db check",
}


def documented() -> dict[str, set[str]]:
    """Names in the first column of each schema's table."""
    found = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        names = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
        found[section.split("`")[1]] = {name for cell in names for name in re.findall(r"`(\w+)`", cell)}
    return found


def keys(body: Mapping[str, Any], schema: str) -> set[str]:
    if schema not in ROWS:
        return set(body)
    assert set(body) == {"schema", ROWS[schema]}
    return set(body[ROWS[schema]][0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A starter whose target was blessed and then damaged and replayed."""
    root = tmp_path_factory.mktemp("json")
    config = root / "driftpin.toml"
    assert run(["init", str(root)]) == 0
    assert run(["--config", str(config), "baseline", "bless", "try-me"]) == 0
    config.write_text(config.read_text().replace("# options =", "options ="))
    return root


@pytest.fixture(scope="module")
def replayed(folder: Path) -> dict[str, Any]:
    """The body of a replay that drifted."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = run(["--config", str(folder / "driftpin.toml"), "replay", "try-me", "--format", "json"])
    body: dict[str, Any] = json.loads(out.getvalue())
    assert status == body["exit_code"] == 1
    return body


@pytest.fixture
def printed(folder: Path, replayed: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Callable[[str], Any]:
    def command(line: str) -> Any:
        capsys.readouterr()
        run(["--config", str(folder / "driftpin.toml"), *line.split(), "--format", "json"])
        return json.loads(capsys.readouterr().out)

    return command


def test_every_schema_of_the_code_is_on_the_page() -> None:
    tree = PAGE.parents[1] / "driftpin"
    rooms = [*(tree / "cli").glob("*.py"), *(tree / "workflow").glob("*.py")]
    named = {schema for path in rooms for schema in re.findall(r'"(driftpin\.\w+/\d+)"', path.read_text())}
    assert len(named) > 10
    assert named - set(documented()) == {STORED}


def test_every_schema_of_the_page_is_checked_here() -> None:
    assert set(documented()) == {*COMMANDS, "driftpin.replay/1", checkup.DOCTOR, ELSEWHERE}


@pytest.mark.parametrize("schema", COMMANDS)
def test_printed_keys_are_the_documented_ones(schema: str, printed: Callable[[str], Any]) -> None:
    body = printed(COMMANDS[schema])
    assert body.get("schema", body.get("format")) == schema
    assert keys(body, schema) == documented()[schema]


def test_a_replay_s_keys_are_the_documented_ones(replayed: dict[str, Any]) -> None:
    assert replayed["schema"] == "driftpin.replay/1"
    assert set(replayed) == documented()["driftpin.replay/1"]


@pytest.mark.parametrize("part", ["first_divergence", "localisation", "movement", "outcomes", "environment_difference"])
def test_keys_within_a_drifted_replay_are_on_the_page(part: str, replayed: dict[str, Any]) -> None:
    names = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    inner = replayed[part]
    if part == "movement":
        inner = inner[0]
    elif part == "outcomes":
        inner = inner["capital"] | inner["capital"]["findings"][0]
    elif part == "environment_difference":
        inner = inner | inner["facts"][0]
    assert set(inner) - names == set()


def test_keys_of_a_shown_canary_are_on_the_page(printed: Callable[[str], Any]) -> None:
    names = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    body = printed(COMMANDS["driftpin.show/1"])
    [one] = [d for d in body["detail"] if "/decode/" in d["execution"]]
    assert set(one) - names == set()
    assert set(one["tokens"][0]) == {"id", "text", "logprob", "margin", "entropy", "digest", "nonfinite"}
    assert set(body["executions"][0]) - names == set()


def test_a_doctor_s_keys_are_the_documented_ones() -> None:
    finding = checkup.Finding(name="sample", ok=None, detail="not known")
    body = checkup.shape([finding])
    assert set(body) == documented()[checkup.DOCTOR]
    assert set(body["findings"][0]) == {"name", "ok", "detail", "remedy", "broken"}
