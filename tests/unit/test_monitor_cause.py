"""What ends an incident and what does not: silence is never agreement."""

from __future__ import annotations

from typing import Any, cast

import pytest

from driftpin.settings.policy import Severity
from driftpin.store.incident import IncidentKind
from driftpin.verdict.judge import unblessed
from driftpin.verdict.kind import VerdictKind
from driftpin.verdict.verdict import Verdict
from driftpin.workflow.assess import Assessment
from monitor.cause import acceptable, kind_of

NOBODY = cast(Any, None)  # the candidate's reference, which these rules do not ask


def judged(kind: VerdictKind, severity: Severity) -> Assessment:
    return Assessment(verdict=Verdict(kind=kind, severity=severity, headline=kind.value), candidate=NOBODY)


@pytest.mark.parametrize("kind", [VerdictKind.INCOMPLETE, VerdictKind.INVALID, VerdictKind.INCOMPARABLE])
def test_missing_evidence_ends_no_incident_however_quiet_a_policy_makes_it(kind: VerdictKind) -> None:
    assert not acceptable(judged(kind, Severity.INFO))
    assert kind_of(judged(kind, Severity.INFO)) is IncidentKind.CANNOT_MEASURE


@pytest.mark.parametrize("kind", [VerdictKind.MATCH, VerdictKind.NUMERIC])
def test_a_quiet_statement_ends_one(kind: VerdictKind) -> None:
    assert acceptable(judged(kind, Severity.INFO))


def test_a_loud_statement_does_not() -> None:
    assert not acceptable(judged(VerdictKind.NUMERIC, Severity.TICKET))


def test_a_device_class_without_the_baseline_that_another_has_cannot_be_measured() -> None:
    moved = Assessment(verdict=unblessed("b", ("a",)), candidate=NOBODY, elsewhere=("a",))
    assert kind_of(moved) is IncidentKind.CANNOT_MEASURE
    assert not acceptable(moved)
    assert kind_of(Assessment(verdict=unblessed(), candidate=NOBODY)) is None
