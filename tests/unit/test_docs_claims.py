"""Tables and examples in the documents agree with the code: verdicts, exit codes, severities, configuration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driftpin.settings.load import load_config
from driftpin.settings.policy import Policy
from driftpin.settings.starting import starter_files
from driftpin.verdict.kind import VerdictKind, exit_code

ROOT = Path(__file__).resolve().parents[2]


def rows(page: str, heading: str) -> list[list[str]]:
    """Cells of the first table below a heading, without its head."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert len(lines) > 2, (page, heading)
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


def exits(kind: VerdictKind) -> tuple[int, int, int]:
    """For replay, for replay --strict, for compare."""
    return exit_code(kind), exit_code(kind, strict=True), exit_code(kind, comparing=True)


def written_exits(cell: str) -> tuple[int, int, int]:
    numbers = [int(number) for number in re.findall(r"\d", cell)]
    first = numbers[0]
    strict = numbers[1] if "strict" in cell else first
    comparing = numbers[1] if "compare" in cell else first
    return first, strict, comparing


@pytest.mark.parametrize(
    ("page", "heading"),
    [("README.md", "Verdicts and exit codes"), ("docs/architecture/06-verdicts.md", "Verdict and exit code")],
)
def test_verdicts_stand_in_their_order_with_their_exit_codes(page: str, heading: str) -> None:
    table = rows(page, heading)
    assert [row[0] for row in table] == [kind.value for kind in VerdictKind]
    assert {row[0]: written_exits(row[-1]) for row in table} == {kind.value: exits(kind) for kind in VerdictKind}


def test_severities_are_those_of_the_default_policy() -> None:
    policy = Policy()
    for kind, _, same, new, _ in rows("docs/architecture/06-verdicts.md", "Verdict and exit code"):
        found = [policy.severity(kind, same_stack=True).value, policy.severity(kind, same_stack=False).value]
        assert [same.split()[0], new.split()[0]] == found, kind


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/webhook.md"])
def test_the_configuration_in_the_documents_is_valid(page: str, tmp_path: Path) -> None:
    for name, text in starter_files().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    path = tmp_path / "driftpin.toml"
    path.write_text(path.read_text(encoding="utf-8") + "\n" + "\n".join(blocks), encoding="utf-8")
    config = load_config(path, {})
    assert config.channels["oncall"].kind == "webhook"


def test_the_starter_names_options_that_exist() -> None:
    text = starter_files()["driftpin.toml"]
    assert 'driftpin baseline bless try-me --why "first look"' in text
    assert "--reason" not in text
