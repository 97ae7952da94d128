"""Configurations that are not valid: each error names file, key, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from driftpin.errors import ConfigError
from driftpin.settings.load import load_config

BASE = '[suites.s]\nbuiltin = "core"\n[models.smol]\npath = "m"\n'
FAKE = BASE + '[targets.t]\nengine = "fake"\nsuite = "s"\n'


def error_of(
    tmp_path: Path, text: str | bytes, environ: Mapping[str, str] | None = None, flags: Mapping[str, str] | None = None
) -> str:
    main = tmp_path / "driftpin.toml"
    main.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as caught:
        load_config(main, environ or {}, flags or {})
    return str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FAKE + 'sampeling = "clean"', 'targets.t.sampeling: there is no such key; did you mean "sampling"?'),
        ("[target.t]", 'target: there is no such key; did you mean "targets"?'),
        (BASE + '[targets.t]\nsuite = "s"', "targets.t.engine: is missing."),
        ('[targets."a b"]\nengine = "fake"', 'targets."a b".suite: is missing.'),
        (FAKE + "threads = true", "targets.t.threads: must be a whole number."),
        (FAKE + 'threads = "4"', "targets.t.threads: must be a whole number."),
        (FAKE + "threads = 0", "targets.t.threads: must be at least 1."),
        (FAKE + 'attention = "flash"', 'targets.t.attention: must be "sdpa" or "eager", not "flash".'),
        (FAKE + 'sampling = "greedy"', 'targets.t.sampling: must be "clean" or "as_shipped", not "greedy".'),
        (FAKE + "repeats = 2", "targets.t.repeats: must be at least 3."),
        (FAKE + "probes = []", "targets.t.probes: must not be empty."),
        (FAKE + 'probes = ["decode", "decode"]', "targets.t.probes: names something twice."),
        (FAKE + 'probes = "decode"', "targets.t.probes: must be a list."),
        (FAKE + 'probes = ["prefill"]', 'targets.t.probes.0: must be "decode" or "score", not "prefill".'),
        (FAKE + 'every = "0m"', "targets.t.every: must be longer than nothing and at most ten years."),
        (FAKE + 'every = "1 hour"', 'targets.t.every: must be a duration like "30s", "45m", "1h" or "1d".'),
        (FAKE + 'cron = "* * * *"', 'targets.t.cron: must be five fields like "0 * * * *"'),
        (FAKE + 'cron = "0 * * * *"\nevery = "1h"', "targets.t.cron: and every exclude one another."),
        (FAKE + 'grace = "1m"', "targets.t.grace: needs a schedule: every or cron."),
        (FAKE + 'quota = "200"', 'targets.t.quota: must be a size like "200MB" or "1GiB", more than nothing.'),
        (FAKE + 'device = "gpu"', "targets.t.device: has the wrong form"),
        (FAKE + "budget = { seconds = 0 }", "targets.t.budget.seconds: must be more than 0"),
        (FAKE + "budget = { seconds = nan }", "targets.t.budget.seconds: must be"),
        (FAKE + "options = { when = 2026-01-01 }", "targets.t.options: may hold texts, finite numbers"),
        (FAKE + "generation = { x = inf }", "targets.t.generation: may hold texts, finite numbers"),
        (FAKE + 'owner = ""', "targets.t.owner: must not be empty."),
        (FAKE + 'policy = "prood"\n[policies.prod]', 'there is no policy "prood"; did you mean "prod"?'),
        (FAKE + 'baseline_of = "u"', 'targets.t.baseline_of: there is no target "u"; known: t.'),
        (FAKE + 'baseline_of = "t"', "targets.t.baseline_of: names the target itself"),
        (FAKE.replace('"s"', '"x"'), 'targets.t.suite: there is no suite "x"; known: s.'),
        (FAKE + 'model = "smoll"', 'targets.t.model: there is no model "smoll"; did you mean "smol"?'),
        (FAKE.replace("fake", "transformers"), 'targets.t.model: is missing: the engine "transformers" needs a model'),
        (FAKE.replace("fake", "vllm"), 'targets.t.engine: must be "transformers" or "fake", not "vllm".'),
        (FAKE.replace("targets.t", "targets.r-9f31"), "targets.r-9f31: reads like a replay"),
        (FAKE.replace("targets.t", 'targets."t@x"'), 'targets."t@x": is no usable name'),
        ('[routes]\npage = ["pager"]', 'routes.page: there is no channel "pager"; known: log.'),
        ('[policies.p]\nnew_stack = { drifft = "page" }', 'drifft: there is no such key; did you mean "drift"?'),
        (
            '[policies.p]\nsame_stack = { drift = "loud" }',
            'drift: must be "page", "ticket", "info" or "none", not "loud"',
        ),
        ('[models.m]\npath = "x"\nrevision = "main"', "models.m.revision: must be a full commit, 40 hex digits"),
        ("[suites.s]", 'suites.s: needs either path = "FILE" or builtin = "core"'),
        ('[suites.s]\npath = "a"\nbuiltin = "core"', "suites.s: needs either"),
        ('[channels.c]\nkind = "webhook"', "channels.c.url: is missing: a webhook needs an address."),
        (
            '[channels.c]\nkind = "webhook"\nurl = "alerts"',
            'channels.c.url: must be an address that begins with "https',
        ),
        ('[channels.c]\nkind = "log"\nurl = "https://x"', "channels.c.url: is of no use to a log."),
        ('[store]\nurl = "mysql://x"', 'store.url: must begin with "sqlite:///" or "postgresql://".'),
        ('[store]\npassword = { env = "PW" }', "store.password: is of no use to SQLite."),
        ("store = 3", "store: must be a table."),
        ("targets = 3", "targets: must be a table."),
        ("[[targets.t]]", "targets.t: must be a table."),
        ("include = 3", 'include: must be a list of file names like ["more/*.toml"].'),
        ('include = ["gone.toml"]', 'include: "gone.toml" names no file.'),
        ("[store", "driftpin.toml, line 1, at the end: is not TOML: Expected"),
        ("a = 1\nb =\n", "driftpin.toml, line 2, column 4: is not TOML: Invalid value."),
        (b'[monitor]\nhost = "\xff"', "driftpin.toml: is not UTF-8 text (byte 0xff at offset 18)."),
        ("x = " + "[" * 5000, "driftpin.toml: is nested too deeply."),
    ],
)
def test_what_is_wrong_is_said_where_it_is(tmp_path: Path, text: str | bytes, expected: str) -> None:
    message = error_of(tmp_path, text)
    assert message.startswith("driftpin.toml")
    assert expected in message


def test_every_error_of_a_file_is_listed_once(tmp_path: Path) -> None:
    message = error_of(tmp_path, FAKE + "threads = 0\nrepeats = 1\nowner = 5")
    assert message.splitlines() == [
        "3 errors:",
        "  driftpin.toml: targets.t.owner: must be a text in quotes.",
        "  driftpin.toml: targets.t.repeats: must be at least 3.",
        "  driftpin.toml: targets.t.threads: must be at least 1.",
    ]


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no configuration at .*x\.toml\. Run `driftpin init`"):
        load_config(tmp_path / "x.toml", {})


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('[store]\nurl = "postgresql://u@h/d"\npassword = "hunter2"', "hunter2"),
        ('[store]\nurl = "postgresql://u:hunter2@h/d"', "hunter2"),
        ('[store]\nurl = "postgresql://u@h/d?password=hunter2"', "hunter2"),
        ('[channels.c]\nkind = "webhook"\nurl = "https://u:hunter2@h/"', "hunter2"),
        ('[channels.c]\nkind = "webhook"\nurl = "https://h/"\nsecret = "whsec_abc"', "whsec_abc"),
    ],
)
def test_a_literal_secret_is_refused_and_not_repeated(tmp_path: Path, text: str, secret: str) -> None:
    message = error_of(tmp_path, text)
    assert 'use { file = "PATH" } or { env = "NAME" }' in message
    assert secret not in message


@pytest.mark.parametrize("value", ['{ vault = "x" }', '{ file = "a", env = "B" }', "{}", '{ file = "" }'])
def test_a_secret_has_one_source(tmp_path: Path, value: str) -> None:
    message = error_of(tmp_path, f'[store]\nurl = "postgresql://u@h/d"\npassword = {value}')
    assert "driftpin.toml: store.password: " in message


def test_a_literal_secret_in_a_variable_is_refused(tmp_path: Path) -> None:
    text = '[store]\nurl = "postgresql://u@h/d"'
    message = error_of(tmp_path, text, {"DRIFTPIN_STORE__PASSWORD": "hunter2"})
    assert message.startswith("environment variable DRIFTPIN_STORE__PASSWORD: store.password: is a secret")
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DRIFTPIN_STORE_URL", "names no key; did you mean DRIFTPIN_STORE__URL?"),
        ("DRIFTPIN_STORE__URLL", 'names no key; did you mean "url"?'),
        ("DRIFTPIN_STORE", "names a table, not a key in it; known: password, url."),
        ("DRIFTPIN_TARGETS__T", "names a table, not a key in it"),
        ("DRIFTPIN_TARGETS__TT__DTYPE", 'names "tt", which is not among the targets of the file; known: t.'),
        ("DRIFTPIN_STORE__URL__X", '"X" is too much: the key ends before it.'),
        ("DRIFTPIN_NONSENSE", "names no key; known: channels, models"),
    ],
)
def test_a_variable_that_names_no_key_is_an_error(tmp_path: Path, name: str, expected: str) -> None:
    message = error_of(tmp_path, FAKE, {name: "x"})
    assert message.startswith(f"environment variable {name}: {expected}")


def test_a_variable_that_names_two_targets_is_an_error(tmp_path: Path) -> None:
    text = FAKE + '[targets.a-b]\nengine = "fake"\nsuite = "s"\n[targets.a_b]\nengine = "fake"\nsuite = "s"'
    assert "could mean each of a-b, a_b in targets" in error_of(tmp_path, text, {"DRIFTPIN_TARGETS__A_B__OWNER": "x"})


def test_a_wrong_value_names_the_variable_or_flag_it_came_from(tmp_path: Path) -> None:
    message = error_of(tmp_path, FAKE, {"DRIFTPIN_TARGETS__T__THREADS": "many"})
    assert message == "environment variable DRIFTPIN_TARGETS__T__THREADS: targets.t.threads: must be a whole number."
    message = error_of(tmp_path, FAKE, flags={"targets.t.threads": "0"})
    assert message == "flag targets.t.threads: targets.t.threads: must be at least 1."


def test_a_flag_for_a_target_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    message = error_of(tmp_path, FAKE, flags={"targets.nope.owner": "x"})
    assert message == 'flag targets.nope.owner: "nope" is not among the targets of the file; known: t.'


@pytest.mark.parametrize(
    "text",
    [
        '[store]\nurl = "postgresql://u:hunter2@h\u2100/d"',
        '[channels.c]\nkind = "webhook"\nurl = "http://u:hunter2@[x"',
    ],
)
def test_an_address_that_cannot_be_split_is_not_repeated(tmp_path: Path, text: str) -> None:
    message = error_of(tmp_path, text)
    assert "url: is no usable address." in message
    assert "hunter2" not in message


def test_a_variable_cannot_smuggle_in_other_keys(tmp_path: Path) -> None:
    message = error_of(tmp_path, FAKE, {"DRIFTPIN_TARGETS__T__THREADS": '1\n[store]\nurl = "x"'})
    assert message.endswith("targets.t.threads: must be a whole number.")


@pytest.mark.parametrize("flag", ["store", "store.nope", "targets", "a b", ""])
def test_a_flag_that_names_no_key_is_an_error(tmp_path: Path, flag: str) -> None:
    assert "names no key of the configuration" in error_of(tmp_path, FAKE, flags={flag: "x"})


def test_a_key_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text("[targets.t]\nthreads = 2\n[monitor]\ntick_seconds = 5")
    message = error_of(tmp_path, 'include = ["more.toml"]\n' + FAKE + "threads = 1\n[monitor]\ntick_seconds = 5")
    assert message.splitlines()[1:] == [
        "  more.toml: monitor.tick_seconds: is set in driftpin.toml too; keep one of them.",
        "  more.toml: targets.t.threads: is set in driftpin.toml too; keep one of them.",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [("monitor = 3", "[monitor]\ntick_seconds = 5"), ("[monitor]\ntick_seconds = 5", "monitor = 3")],
)
def test_a_value_where_another_file_has_a_table_is_an_error(tmp_path: Path, one: str, other: str) -> None:
    (tmp_path / "more.toml").write_text(other)
    assert "is set in driftpin.toml too" in error_of(tmp_path, f'include = ["more.toml"]\n{one}')


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text("[targets.t]\nthreads = 0")
    message = error_of(tmp_path, 'include = ["more.toml"]\n' + FAKE)
    assert message == "more.toml: targets.t.threads: must be at least 1."


def test_included_files_include_nothing(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text('include = ["x.toml"]')
    assert "more.toml: include: only the main file may include" in error_of(tmp_path, 'include = ["more.toml"]')


def test_an_included_file_with_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text("a = 1\na = 2\n")
    assert "more.toml, line 2, column 6: is not TOML" in error_of(tmp_path, 'include = ["*.toml"]')


@pytest.mark.parametrize("ask", ["target", "suite", "recipe", "operations", "policy", "suite_path", "suite_of"])
def test_asking_for_what_is_not_there_offers_what_is(tmp_path: Path, ask: str) -> None:
    main = tmp_path / "driftpin.toml"
    main.write_text(
        FAKE.replace("targets.t", "targets.core").replace("suites.s", "suites.core").replace('"s"', '"core"')
    )
    with pytest.raises(ConfigError, match=r'there is no \w+ "cor"') as caught:
        getattr(load_config(main, {}), ask)("cor")
    assert ask == "policy" or 'did you mean "core"?' in str(caught.value)
