"""What `config show --origin` and `driftpin init` give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

from driftpin.settings.load import load_config
from driftpin.settings.show import config_origins, config_to_json
from driftpin.settings.starting import SUITE_FILE, starter_config, starter_files, starter_suite

TEXT = """
[suites.s]
path = "s.yaml"
[targets.t]
engine = "fake"
suite = "s"
every = "1h"
probes = ["decode"]
options = { faults = { nan = { block = 1 } } }
[channels.c]
kind = "webhook"
url = { env = "HOOK" }
"""


def test_every_key_is_shown_with_its_origin(tmp_path: Path) -> None:
    main = tmp_path / "driftpin.toml"
    main.write_text(TEXT)
    environ = {"DRIFTPIN_TARGETS__T__THREADS": "2", "DRIFTPIN_TARGETS__T__OWNER": "env"}
    config = load_config(main, environ, {"targets.t.owner": "flag"})
    rows = {key: (shown, origin) for key, shown, origin in config_origins(config)}
    file = f"file {main}"
    assert rows["targets.t.every"] == ('"1h"', file)
    assert rows["targets.t.probes"] == ('["decode"]', file)
    assert rows["targets.t.options.faults.nan.block"] == ("1", file)
    assert rows["targets.t.threads"] == ("2", "environment DRIFTPIN_TARGETS__T__THREADS")
    assert rows["targets.t.owner"] == ('"flag"', "flag targets.t.owner")
    assert rows["targets.t.cron"] == ("not set", "default")
    assert rows["targets.t.budget.seconds"] == ("120", "default")
    assert rows["channels.c.url"] == ('"env:HOOK"', file)
    assert rows["routes.page"] == ('["log"]', "default")
    assert rows["suites.s.path"] == ('"s.yaml"', file)
    assert rows["store.url"] == (f'"sqlite:///{tmp_path}/driftpin.db"', "default")


def test_the_json_form_has_a_version_and_the_same_rows(tmp_path: Path) -> None:
    main = tmp_path / "driftpin.toml"
    main.write_text(TEXT)
    config = load_config(main, {})
    value = json.loads(json.dumps(config_to_json(config)))
    assert value["format"] == "driftpin.config/1"
    assert value["path"] == str(main)
    assert [row["key"] for row in value["settings"]] == [key for key, _, _ in config_origins(config)]
    found = next(row for row in value["settings"] if row["key"] == "targets.t.every")
    assert found == {"key": "targets.t.every", "value": "1h", "layer": "file", "source": str(main)}


def test_the_starter_loads_and_has_a_target_on_the_fake_engine(tmp_path: Path) -> None:
    for name, text in starter_files().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    config = load_config(tmp_path / "driftpin.toml", {})
    assert list(config.targets) == ["try-me"]
    assert config.recipe("try-me").engine == "fake"
    suite = config.suite_path(config.suite_of("try-me"))
    assert suite == tmp_path / SUITE_FILE
    assert suite.is_file()


def test_the_starters_commented_part_is_valid_too(tmp_path: Path) -> None:
    # A line that is commented-out TOML begins with "# " and a key or a table; prose begins with a capital letter.
    lines = [line.removeprefix("# ") if _is_toml(line) else line for line in starter_config().splitlines()]
    text = "\n".join(lines).replace('url = "sqlite:///driftpin.db"', 'url = "postgresql://driftpin@db/driftpin"')
    main = tmp_path / "driftpin.toml"
    main.write_text(text)
    config = load_config(main, {})
    assert set(config.targets) == {"try-me", "chat"}
    assert config.operations("chat")["policy"]["name"] == "prod"
    assert config.recipe("chat").dtype == "bfloat16"
    assert str(config.store.password) == f"file:{tmp_path}/secrets/db"


def _is_toml(line: str) -> bool:
    head = line.removeprefix("# ").split(" ")[0]
    return line.startswith("# ") and (head.startswith("[") or (" = " in line and head.islower()))


def test_the_starters_suite_is_yaml_with_distinct_ids() -> None:
    ids = [canary["id"] for canary in yaml.safe_load(starter_suite())["canaries"]]
    assert ids == ["capital", "digits", "continuation"]


def test_loading_a_configuration_imports_nothing_heavy() -> None:
    heavy = {"torch", "transformers", "numpy", "scipy", "sqlalchemy", "pydantic_settings", "rich", "typer"}
    code = "import sys, driftpin.settings.load, driftpin.settings.show; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())
