"""The check of a suite: what can be said of it alone, and what running it on a model shows. Never a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from driftpin.environment.fact import Unknown
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Suite
from driftpin.suite.checks import run_checks
from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.suite.warnings import suite_findings
from driftpin.trace.traceset import TraceSet
from driftpin.verdict.floors import Floors
from driftpin.workflow import suite_check_lengths as sides
from driftpin.workflow import suite_check_margins as margin
from driftpin.workflow import suite_check_order as orders
from driftpin.workflow.suite_check_closeness import Names, close_to_json, margin_findings
from driftpin.workflow.suite_check_run import About, Listening, Runs, about_model, run_suite

SCHEMA = "driftpin.suite_check/1"
STATIC = "static"
NO_FLOOR = "no score could be disturbed, so there is no yardstick to hold margins against"
STILL = "the disturbance moved nothing, so there is no yardstick to hold margins against"


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelCheck:
    """What running the suite on one model showed."""

    recipe: Recipe
    lengths: tuple[sides.Length, ...]
    crossings: tuple[sides.Crossing, ...] | Unknown
    floors: Floors | None
    margins: tuple[margin.Margins, ...] | Unknown
    dependences: tuple[orders.Dependence, ...] | Unknown
    compared: int  # executions that both orders had
    names: Names = field(default_factory=dict)  # tokens as text, of the close positions


@dataclass(frozen=True, kw_only=True, eq=False)
class SuiteCheck:
    """Everything found, with the evidence where a model ran."""

    suite: Suite
    findings: tuple[Finding, ...]
    model: ModelCheck | None = None

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that ask for a change."""
        return tuple(found for found in self.findings if found.level is Level.WARNING)


def check_suite(suite: Suite) -> SuiteCheck:
    """Without a model."""
    return SuiteCheck(suite=suite, findings=suite_findings(suite))


def check_on_model(suite: Suite, recipe: Recipe, listening: Listening, *, text: bool = True) -> SuiteCheck:
    """With a model, in child processes; `text` False keeps outputs and tokens out of every sentence.

    Raises `ReplayFailedError` where the model does not run.
    """
    runs = run_suite(recipe, suite, listening)
    close = _margins(runs)
    about = about_model(recipe, _ids(close))
    names = about.pieces if text and isinstance(about, About) else {}
    model = ModelCheck(
        recipe=recipe,
        lengths=tuple(_length(one) for one in runs.measured),
        crossings=_crossings(about, runs),
        floors=runs.floors,
        margins=close,
        dependences=runs.dependences,
        compared=orders.compared(runs.traces),
        names=names,
    )
    found = (
        *suite_findings(suite),
        *_unmeasured(runs.traces),
        *_lengths(model, about, suite),
        *_order(model, about),
        *_close(model, text=text),
        *_checks(suite, runs.outputs, text=text),
    )
    return SuiteCheck(suite=suite, findings=found, model=model)


def _length(one: margin.Measured) -> sides.Length:
    prompt = len(one.head.prompt_ids)
    return sides.Length(canary=one.canary, prompt=prompt, fed=prompt + len(one.head.output_ids) - 1)


def _margins(runs: Runs) -> tuple[margin.Margins, ...] | Unknown:
    if runs.floors is None:
        return Unknown(NO_FLOOR)
    if not runs.floors.pair:
        return Unknown(STILL)
    held = (margin.margins_of(one, runs.floors.pair) for one in runs.measured)
    return tuple(one for one in held if one is not None)


def _ids(found: tuple[margin.Margins, ...] | Unknown) -> Iterator[int]:
    for one in () if isinstance(found, Unknown) else found:
        for close in one.close:
            yield from (close.top, close.second)


def _crossings(about: About | Unknown, runs: Runs) -> tuple[sides.Crossing, ...] | Unknown:
    if isinstance(about, Unknown):
        return about
    return sides.crossings(sides.thresholds(about.config), [_length(one) for one in runs.measured])


def _lengths(model: ModelCheck, about: About | Unknown, suite: Suite) -> Iterator[Finding]:
    if isinstance(about, Unknown) or isinstance(model.crossings, Unknown):
        return
    yield from sides.length_findings(model.crossings, model.lengths, about.config)
    if model.recipe.cache == STATIC:
        limits = {canary.id: canary.settings.max_new_tokens for canary in suite.canaries}
        found = sides.static_cache(model.lengths, limits, about.static_padding, about.static_step)
        yield from () if found is None else (found,)


def _order(model: ModelCheck, about: About | Unknown) -> Iterator[Finding]:
    if not isinstance(model.dependences, Unknown):
        cause = sides.remembered(about.config) if isinstance(about, About) else None
        yield from orders.order_findings(model.dependences, cause)


def _close(model: ModelCheck, *, text: bool) -> Iterator[Finding]:
    if model.floors is not None and not isinstance(model.margins, Unknown):
        yield from margin_findings(model.margins, model.floors.pair, model.names, text=text)


def _unmeasured(traces: TraceSet) -> Iterator[Finding]:
    """One per canary, of its first execution that says so."""
    reasons: dict[str, str] = {}
    ills: dict[str, str] = {}
    for entry in traces.entries:
        if entry.unmeasured:
            reasons.setdefault(entry.key.canary, f"{entry.key.probe.value}: {entry.unmeasured}")
        if entry.ills:
            ills.setdefault(entry.key.canary, f"{entry.key.probe.value}: {', '.join(entry.ills)}")
    for canary, reason in reasons.items():
        yield _about(FindingKind.UNMEASURED, canary, f"{canary!r} could not be run, {reason}", "Mend or remove it.")
    for canary, ill in ills.items():
        remedy = "Find out why before you bless: such a trace is judged broken or invalid."
        yield _about(FindingKind.ILL, canary, f"{canary!r} is wrong by itself, {ill}.", remedy)


def _about(kind: FindingKind, canary: str, sentence: str, remedy: str) -> Finding:
    return Finding(kind=kind, level=Level.WARNING, sentence=sentence, remedy=remedy, canaries=(canary,))


def _checks(suite: Suite, outputs: Mapping[str, str], *, text: bool) -> Iterator[Finding]:
    for canary in suite.canaries:
        if canary.id not in outputs:
            continue
        for result in run_checks(canary.checks, outputs[canary.id]):
            if result.passed is not True:
                why = f": {result.detail}" if text else "."
                kind = result.check.kind.value
                yield Finding(
                    kind=FindingKind.CHECK_FAILS,
                    level=Level.NOTE,
                    sentence=f"The {kind} check of {canary.id!r} does not hold for this model{why}",
                    remedy="It can only tell when it begins to hold: change it, or the prompt, or allow more tokens.",
                    canaries=(canary.id,),
                )


def shape(found: SuiteCheck, *, strict: bool, text: bool = True) -> dict[str, Any]:
    """The JSON body of `driftpin suite check`."""
    return {
        "schema": SCHEMA,
        "suite": found.suite.name,
        "digest": found.suite.digest,
        "canaries": list(found.suite.ids),
        "exit_code": exit_code(found, strict=strict),
        "warnings": [one.sentence for one in found.warnings],
        "findings": [one.to_json() for one in found.findings],
        "model": None if found.model is None else _model(found.model, text=text),
    }


def exit_code(found: SuiteCheck, *, strict: bool) -> int:
    """1 for a warning under `strict`, else 0."""
    return int(strict and bool(found.warnings))


def _model(model: ModelCheck, *, text: bool) -> dict[str, Any]:
    return {
        "model": model.recipe.model,
        "engine": model.recipe.engine,
        "dtype": model.recipe.dtype,
        "device": model.recipe.device,
        "tokens": {one.canary: {"prompt": one.prompt, "fed": one.fed} for one in model.lengths},
        "lengths": _known(model.crossings, lambda found: [one.to_json() for one in found]),
        "order": _known(model.dependences, lambda found: _order_shape(model, found)),
        "margins": _known(model.margins, lambda found: _margins_shape(model, found, text=text)),
    }


def _known(part: Any, draw: Any) -> dict[str, Any]:
    """As facts are: `value`, or `unknown` with the reason."""
    return part.to_json() if isinstance(part, Unknown) else {"value": draw(part)}


def _order_shape(model: ModelCheck, found: tuple[orders.Dependence, ...]) -> dict[str, Any]:
    return {
        "order": orders.REVERSED,
        "executions": model.compared,
        "dependent": [one.to_json() for one in found],
    }


def _margins_shape(model: ModelCheck, found: tuple[margin.Margins, ...], *, text: bool) -> dict[str, Any]:
    bands = [one.band for one in found]
    return {
        "limit": None if model.floors is None else model.floors.pair,
        "samples": None if model.floors is None else model.floors.samples,
        "bands": {band.value: bands.count(band) for band in margin.Band},
        "histogram": margin.histogram(found),
        "canaries": {
            one.canary: {
                **one.to_json(),
                "close": [close_to_json(close, model.names, text=text) for close in one.close],
            }
            for one in found
        },
    }
