"""What a verdict is a case of: the kind of incident, and the key under which the same cause is found again. Pure."""

from __future__ import annotations

from driftpin.canonical import digest_of
from driftpin.environment.environment import Equality, Section
from driftpin.settings.policy import Severity
from driftpin.store.incident import IncidentKind
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.assess import Assessment

# About what the target computes; an acceptable verdict ends them.
CHANGES = frozenset({IncidentKind.DRIFT, IncidentKind.BROKEN, IncidentKind.UNSTABLE, IncidentKind.DEVICE_SUSPECT})

KINDS = {
    VerdictKind.DRIFT: IncidentKind.DRIFT,
    VerdictKind.NUMERIC: IncidentKind.DRIFT,
    VerdictKind.BROKEN: IncidentKind.BROKEN,
    VerdictKind.UNSTABLE: IncidentKind.UNSTABLE,
    # These say that nothing can be said: the target is never blamed for drift.
    VerdictKind.INVALID: IncidentKind.CANNOT_MEASURE,
    VerdictKind.INCOMPARABLE: IncidentKind.CANNOT_MEASURE,
    VerdictKind.INCOMPLETE: IncidentKind.CANNOT_MEASURE,
}

Environments = tuple[str, str]  # digests of the baseline's environment and the candidate's
ANY: Environments = ("", "")  # where the cause does not depend on them


def kind_of(found: Assessment) -> IncidentKind | None:
    """None where there is nothing to report: a match, or no baseline anywhere."""
    if found.elsewhere:
        return IncidentKind.CANNOT_MEASURE
    kind = KINDS.get(found.verdict.kind)
    return IncidentKind.DEVICE_SUSPECT if kind is IncidentKind.DRIFT and _device_suspect(found) else kind


def _device_suspect(found: Assessment) -> bool:
    """The microprobes changed although model and stack did not."""
    agreed = found.equalities or {}
    same = agreed.get(Section.MODEL) is Equality.SAME and agreed.get(Section.STACK) is Equality.SAME
    return same and agreed.get(Section.BEHAVIOUR) is Equality.DIFFERENT


def environments_of(found: Assessment) -> Environments:
    """The pair that, with target and kind, tells one cause from another."""
    if found.baseline is None:
        return ANY
    return found.baseline.replay.environment or "", found.candidate.replay.environment or ""


def incident_key(target: str, kind: IncidentKind, environments: Environments = ANY) -> str:
    """sha256 in hex; holds no time, replay or measured value, so that the same cause has the same key."""
    pair = environments if kind in CHANGES else ANY
    return digest_of({"target": target, "kind": kind.value, "environments": list(pair)})


def acceptable(found: Assessment) -> bool:
    """Judged against a baseline, and nothing that needs anybody."""
    loud = found.verdict.severity in (Severity.TICKET, Severity.PAGE)
    unseen = kind_of(found) is IncidentKind.CANNOT_MEASURE  # however quiet a policy makes it: silence is no agreement
    return found.verdict.kind is not VerdictKind.UNBLESSED and not loud and not unseen
