"""Configurations that are valid: values, defaults, paths, includes and precedence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftpin.settings.load import load_config
from driftpin.settings.policy import NEW_STACK, Policy, Severity
from driftpin.settings.recipe import Recipe, Sampling
from driftpin.settings.schema import ChannelTable

FULL = """
[store]
url = "sqlite:///data/d.db"
[suites.core]
builtin = "core"
[suites.own]
path = "suites/own.yaml"
text = "hide"
[models.smol]
path = "models/smol"
revision = "0123456789abcdef0123456789abcdef01234567"
dtype = "bfloat16"
[targets.chat]
engine = "transformers"
model = "smol"
suite = "own"
image = "cu130"
device = "cuda:1"
sampling = "as_shipped"
generation = { repetition_penalty = 1.1 }
attention = "eager"
threads = 2
every = "1h"
place = "each-host"
probes = ["decode"]
budget = { seconds = 30 }
owner = "ml-platform"
policy = "prod"
quota = "200MB"
baseline_of = "try-me"
[targets.try-me]
engine = "fake"
suite = "core"
options = { faults = { nan = { block = 1 } } }
[policies.prod]
confirm = 3
same_stack = { numeric = "info" }
[channels.oncall]
kind = "webhook"
url = "https://alerts.example/hook"
[routes]
page = ["oncall"]
"""


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "driftpin.toml"
    path.write_text(FULL)
    return path


def test_recipe_of_a_target_joins_target_and_model(main: Path) -> None:
    assert load_config(main, {}).recipe("chat") == Recipe(
        engine="transformers",
        model="smol",
        path=str(main.parent / "models/smol"),
        revision="0123456789abcdef0123456789abcdef01234567",
        dtype="bfloat16",
        device="cuda:1",
        sampling=Sampling.AS_SHIPPED,
        generation={"repetition_penalty": 1.1},
        attention="eager",
        threads=2,
        image="cu130",
    )


def test_recipe_of_a_fake_target_needs_no_model(main: Path) -> None:
    expected = Recipe(engine="fake", model="fake", options={"faults": {"nan": {"block": 1}}})
    assert load_config(main, {}).recipe("try-me") == expected


def test_a_target_may_override_its_models_dtype(main: Path) -> None:
    config = load_config(main, {"DRIFTPIN_TARGETS__CHAT__DTYPE": "float32"})
    assert config.recipe("chat").dtype == "float32"


def test_operations_are_json_in_seconds_and_bytes(main: Path) -> None:
    operations = json.loads(json.dumps(load_config(main, {}).operations("chat")))
    policy = operations.pop("policy")
    assert operations == {
        "suite": "own",
        "text": "hide",
        "schedule": {"every": 3600, "cron": None, "grace": 2700},
        "budget": {"seconds": 30, "when_busy": "skip"},
        "routes": {"page": ["oncall"], "ticket": ["log"], "info": []},
        "probes": ["decode"],
        "shapes": ["alone"],
        "place": "each-host",
        "repeats": 3,
        "owner": "ml-platform",
        "quota": 200_000_000,
        "baseline_of": "try-me",
        "grade": "bitwise",
        "quorum": {"k": 2, "n": 3},
        "reference": "auto",
    }
    restored = Policy.from_json(policy)
    assert restored.confirm == 3
    assert restored.severity("numeric", same_stack=True) is Severity.INFO
    assert restored.severity("drift", same_stack=True) is Severity.PAGE
    assert restored.new_stack == NEW_STACK


def test_paths_start_at_the_file_they_are_written_in(main: Path) -> None:
    config = load_config(main, {})
    assert config.store.url == f"sqlite:///{main.parent}/data/d.db"
    assert config.suite_path("own") == main.parent / "suites/own.yaml"
    assert config.suite_path("core") is None
    assert config.suite("core").builtin == "core"


def test_a_path_below_home_uses_the_given_environment(main: Path) -> None:
    main.write_text(FULL.replace('"models/smol"', '"~/smol"'))
    assert load_config(main, {"HOME": "/somebody"}).recipe("chat").path == "/somebody/smol"


def test_a_path_from_a_variable_or_flag_starts_at_the_working_directory(
    main: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert load_config(main, {"DRIFTPIN_STORE__URL": "sqlite:///x.db"}).store.url == f"sqlite:///{here}/x.db"
    assert load_config(main, {}, {"store.url": "sqlite:///y.db"}).store.url == f"sqlite:///{here}/y.db"


def test_an_empty_file_has_defaults(tmp_path: Path) -> None:
    main = tmp_path / "driftpin.toml"
    main.write_text("")
    config = load_config(main, {})
    assert config.store.url == f"sqlite:///{tmp_path}/driftpin.db"
    assert config.policy("default") == Policy()
    assert config.channels == {"log": ChannelTable(kind="log")}
    assert not config.targets


def test_the_default_policy_can_be_departed_from(tmp_path: Path) -> None:
    main = tmp_path / "driftpin.toml"
    main.write_text('[policies.default]\nnew_stack = { drift = "page" }')
    assert load_config(main, {}).policy("default").severity("drift", same_stack=False) is Severity.PAGE


def test_the_file_is_the_given_one_then_the_variables_then_the_working_directorys(
    main: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.toml"
    other.write_text("")
    monkeypatch.chdir(tmp_path)
    assert load_config(None, {}).path == Path("driftpin.toml")
    assert load_config(None, {"DRIFTPIN_CONFIG": str(other)}).path == other
    assert load_config(main, {"DRIFTPIN_CONFIG": str(other)}).path == main


@pytest.mark.parametrize(
    ("environ", "flags", "expected"),
    [
        ({}, {}, 2),
        ({"DRIFTPIN_TARGETS__CHAT__THREADS": "3"}, {}, 3),
        ({"DRIFTPIN_TARGETS__CHAT__THREADS": "3"}, {"targets.chat.threads": "4"}, 4),
    ],
)
def test_flag_beats_environment_beats_file(
    main: Path, environ: dict[str, str], flags: dict[str, str], expected: int
) -> None:
    assert load_config(main, environ, flags).recipe("chat").threads == expected


def test_variables_reach_every_kind_of_value(main: Path) -> None:
    environ = {
        "DRIFTPIN_TARGETS__TRY_ME__EVERY": "30s",  # a name with a dash
        "DRIFTPIN_TARGETS__CHAT__PROBES": "score,decode",
        "DRIFTPIN_TARGETS__CHAT__SHAPES": '["padded"]',
        "DRIFTPIN_TARGETS__CHAT__BUDGET__SECONDS": "7.5",
        "DRIFTPIN_TARGETS__CHAT__GENERATION__NO_REPEAT_NGRAM_SIZE": "3",
        "DRIFTPIN_MODELS__SMOL__TRUST_REMOTE_CODE": "true",
        "DRIFTPIN_TARGETS__CHAT__OWNER": "42",  # stays text
        "DRIFTPIN_POLICIES__PROD__NEW_STACK__NUMERIC": "page",
    }
    config = load_config(main, environ)
    recipe, operations = config.recipe("chat"), config.operations("chat")
    assert config.operations("try-me")["schedule"] == {"every": 30, "cron": None, "grace": 22}
    assert operations["probes"] == ["score", "decode"]
    assert operations["shapes"] == ["padded"]
    assert operations["budget"]["seconds"] == 7.5
    assert recipe.generation == {"repetition_penalty": 1.1, "no_repeat_ngram_size": 3}
    assert recipe.trust_remote_code is True
    assert operations["owner"] == "42"
    assert operations["policy"]["new_stack"]["numeric"] == "page"


def test_a_flag_with_a_table_replaces_the_files_table(main: Path) -> None:
    config = load_config(main, {}, {"targets.try-me.options": "{ faults = { one_token = 5 } }"})
    assert config.recipe("try-me").options == {"faults": {"one_token": 5}}


def test_variables_of_other_readers_are_left_alone(main: Path) -> None:
    environ = {"DRIFTPIN_CACHE": "x", "DRIFTPIN_IMAGE_LOCK": "x", "DRIFTPIN_WORKER_STORE": "x", "OTHER": "x"}
    assert load_config(main, environ).recipe("chat") == load_config(main, {}).recipe("chat")


def test_included_files_add_keys_and_bring_their_own_folder(tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.toml").write_text('[targets.a]\nsuite = "s"\n[models.m]\npath = "weights"')
    (more / "b.toml").write_text('[targets.a]\nengine = "fake"')
    main = tmp_path / "driftpin.toml"
    main.write_text('include = ["more/*.toml"]\n[suites.s]\npath = "s.yaml"\n[targets.a]\nmodel = "m"')
    config = load_config(main, {})
    assert config.recipe("a").path == str(more / "weights")
    assert config.suite_path("s") == tmp_path / "s.yaml"


def test_a_file_from_windows_is_read(tmp_path: Path) -> None:
    main = tmp_path / "driftpin.toml"
    main.write_bytes(b'\xef\xbb\xbf[monitor]\r\nhost = "h"\r\n')
    assert load_config(main, {}).tables.monitor.host == "h"
