"""`driftpin suite check|import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftpin.cli.out import Format, FormatOption, emit, errors, plain
from driftpin.errors import SuiteError

app = typer.Typer(help="The canaries: checked and imported.", no_args_is_help=True)

CHECK = "driftpin.suite_check/1"


@app.command()
def check(
    path: Annotated[Path | None, typer.Argument(help="a suite's file; default: the built-in suite")] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Validate a suite and say what it does not cover."""
    from driftpin.suite.builtin import builtin_suite  # noqa: PLC0415 - start-up time
    from driftpin.suite.load import load_suite  # noqa: PLC0415
    from driftpin.suite.warnings import suite_warnings  # noqa: PLC0415

    suite = builtin_suite() if path is None else load_suite(path)
    body = {
        "schema": CHECK,
        "suite": suite.name,
        "digest": suite.digest,
        "canaries": list(suite.ids),
        "warnings": list(suite_warnings(suite)),
    }

    def text(c):  # type: ignore[no-untyped-def]
        c.print(f"{plain(suite.name)}: {len(suite.canaries)} canaries, digest {suite.digest[:12]}")
        for sentence in body["warnings"]:
            c.print(f"  [yellow]{plain(sentence)}[/]", soft_wrap=True)

    emit(form, body, text)


@app.command(name="import")
def import_(
    log: Annotated[Path, typer.Argument(help="JSONL of OpenAI-style requests")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the suite to write")],
) -> None:
    """Make a suite from logged requests."""
    from driftpin.suite.importing import dump_suite, import_requests  # noqa: PLC0415 - start-up time

    if output.exists():
        raise SuiteError(f"{output} exists already.", remedy="Name a new file.")
    report = import_requests(log)
    output.write_text(dump_suite(report.suite), encoding="utf-8")
    for line, reason in report.skipped:
        errors().print(f"  line {line} skipped: {plain(reason)}", soft_wrap=True)
    if report.dropped_settings:
        names = ", ".join(sorted(report.dropped_settings))
        errors().print(f"  sampling settings dropped, canaries are greedy: {plain(names)}", soft_wrap=True)
    errors().print(f"wrote {plain(output)}: {len(report.suite.canaries)} canaries, {len(report.skipped)} lines skipped")
