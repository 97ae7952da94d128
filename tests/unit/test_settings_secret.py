"""Secrets are references: read again at each use, never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftpin.errors import ConfigError
from driftpin.settings.load import load_config
from driftpin.settings.secret import Secret, Source
from driftpin.settings.show import config_origins, config_to_json

STORE = '[store]\nurl = "postgresql://driftpin@db:5432/driftpin"\npassword = { file = "pw" }'


def test_a_file_is_read_again_at_each_use(tmp_path: Path) -> None:
    file = tmp_path / "pw"
    secret = Secret(source=Source.FILE, name=str(file))
    file.write_text("one\n")
    assert secret.read() == "one"
    file.write_text(" two \n\n")
    assert secret.read() == " two \n"  # one newline is the editor's, the rest is the secret's


def test_a_variable_is_read_again_at_each_use() -> None:
    environ = {"PW": "one"}
    secret = Secret(source=Source.ENV, name="PW", environ=environ)
    assert secret.read() == "one"
    environ["PW"] = "two"
    assert secret.read() == "two"


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "does not exist"), (b"", "is empty"), (b"\n", "is empty"), (b"\xff", "is not UTF-8 text")],
)
def test_a_file_without_a_secret_is_a_sentence(tmp_path: Path, content: bytes | None, expected: str) -> None:
    file = tmp_path / "pw"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=expected) as caught:
        Secret(source=Source.FILE, name=str(file)).read()
    assert caught.value.remedy


def test_a_folder_is_no_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        Secret(source=Source.FILE, name=str(tmp_path)).read()


def test_a_path_with_nul_is_no_secret() -> None:
    with pytest.raises(ConfigError, match="cannot be read: not a usable path"):
        Secret(source=Source.FILE, name="a\0b").read()


@pytest.mark.parametrize(("environ", "expected"), [({}, "env:PW is not set"), ({"PW": ""}, "env:PW is empty")])
def test_a_variable_without_a_secret_is_a_sentence(environ: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        Secret(source=Source.ENV, name="PW", environ=environ).read()


def test_a_secret_never_shows(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("hunter2")
    main = tmp_path / "driftpin.toml"
    main.write_text(STORE + '\n[channels.c]\nkind = "webhook"\nurl = { env = "HOOK" }')
    config = load_config(main, {"HOOK": "hunter2"})
    secret = config.channels["c"].url
    assert isinstance(secret, Secret)
    assert secret.read() == "hunter2"
    for shown in (repr(config), repr(secret), str(secret), str(config_origins(config)), str(config_to_json(config))):
        assert "hunter2" not in shown


def test_the_stores_address_gets_its_password_quoted(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("p@ss:w/rd\n")
    main = tmp_path / "driftpin.toml"
    main.write_text(STORE)
    config = load_config(main, {})
    assert config.store_url() == "postgresql://driftpin:p%40ss%3Aw%2Frd@db:5432/driftpin"
    assert config.store.url == "postgresql://driftpin@db:5432/driftpin"


def test_a_password_needs_a_user(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("x")
    main = tmp_path / "driftpin.toml"
    main.write_text(STORE.replace("driftpin@", ""))
    with pytest.raises(ConfigError, match="names no user"):
        load_config(main, {}).store_url()


def test_a_variable_replaces_the_files_reference(tmp_path: Path) -> None:
    main = tmp_path / "driftpin.toml"
    main.write_text(STORE)
    config = load_config(main, {"DRIFTPIN_STORE__PASSWORD__ENV": "PW", "PW": "x"})
    assert str(config.store.password) == "env:PW"
    assert config.store_url() == "postgresql://driftpin:x@db:5432/driftpin"
