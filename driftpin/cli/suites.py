"""`driftpin suite check|import`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftpin.cli.out import Format, FormatOption, emit, errors, plain
from driftpin.cli.session import Session, current
from driftpin.counting import canaries_counted, counted
from driftpin.errors import ConfigError, SuiteError

if TYPE_CHECKING:
    from driftpin.settings.config import Config
    from driftpin.settings.recipe import Recipe
    from driftpin.suite.canary import Suite

app = typer.Typer(help="The canaries: checked and imported.", no_args_is_help=True)


@app.command()
def check(
    context: typer.Context,
    suite: Annotated[
        str | None, typer.Argument(help="a suite's file or its name; default: the target's, else the built-in one")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="run it on this model: a name of the configuration, or a folder")
    ] = None,
    target: Annotated[str | None, typer.Option(help="run it as this target would")] = None,
    dtype: Annotated[str | None, typer.Option(help="instead of the model's own, for example bfloat16")] = None,
    device: Annotated[str | None, typer.Option(help="instead of the target's, for example cuda:0")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="exit with 1 for a finding of level warning")] = False,
    form: FormatOption = Format.TEXT,
) -> int:
    """Validate a suite and say what it does not cover; with a model, run it and say what its canaries can show."""
    from driftpin.cli import runs, suite_screen  # noqa: PLC0415 - start-up time
    from driftpin.workflow.suite_check import check_on_model, check_suite, exit_code, shape  # noqa: PLC0415

    session = current(context)
    recipe = _recipe(session, model, target, {"dtype": dtype, "device": device})
    loaded, text = _suite(session, suite, target)
    if recipe is None:
        found = check_suite(loaded)
    else:
        found = check_on_model(loaded, recipe, lambda title: runs.progress(f"{loaded.name}, {title}"), text=text)
    body = shape(found, strict=strict, text=text)
    emit(form, body, lambda c: suite_screen.check(c, body))
    return exit_code(found, strict=strict)


def _recipe(session: Session, model: str | None, target: str | None, asked: dict[str, str | None]) -> Recipe | None:
    """How the model is to be run, or None where nobody named one."""
    given = {name: value for name, value in asked.items() if value is not None}
    if model is not None and target is not None:
        raise ConfigError("--model and --target were both given.", remedy="A target names its model: give one of them.")
    if target is not None:
        return replace(session.config().recipe(target), **given)  # type: ignore[arg-type]  # str fields
    if model is not None:
        from driftpin.workflow.suite_check_model import model_recipe  # noqa: PLC0415 - start-up time

        return replace(model_recipe(_config(session), model), **given)  # type: ignore[arg-type]
    if given:
        raise ConfigError(f"--{next(iter(given))} says how to run a model, and none was named.", remedy="Add --model.")
    return None


def _suite(session: Session, name: str | None, target: str | None) -> tuple[Suite, bool]:
    """The suite, and whether its text may be shown."""
    from driftpin.suite.builtin import builtin_suite  # noqa: PLC0415 - start-up time
    from driftpin.suite.load import SUFFIXES, load_suite  # noqa: PLC0415
    from driftpin.workflow.order import named_suite  # noqa: PLC0415

    if name is not None and (Path(name).suffix.lower() in SUFFIXES or Path(name).exists()):
        return load_suite(Path(name)), True
    config, builtin = _config(session), builtin_suite()
    if target is not None and name is None:
        name = session.config().suite_of(target)
    if name is None or (name == builtin.name and (config is None or name not in config.tables.suites)):
        return builtin, True
    if config is None:
        raise SuiteError(f"There is no suite file {name}.", remedy="Or run it where driftpin.toml names that suite.")
    return named_suite(config, name), config.suite(name).text == "show"


def _config(session: Session) -> Config | None:
    return session.config() if session.is_configured else None


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
    skipped = counted(len(report.skipped), "line")
    errors().print(f"wrote {plain(output)}: {canaries_counted(len(report.suite.canaries))}, {skipped} skipped")
