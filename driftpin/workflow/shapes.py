"""The JSON that machines read: documented in docs/json-shapes.md, versioned by `schema`. Pure functions of values.

A field is never renamed or removed within one version; new ones may appear. Non-finite numbers are the strings "NaN",
"Infinity" and "-Infinity".
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from driftpin.canonical import json_float
from driftpin.environment.environment import Section
from driftpin.environment.fact import fact_to_json
from driftpin.verdict.kind import CHANGES, VerdictKind, exit_code

if TYPE_CHECKING:  # lists of replays start without what compares them
    from collections.abc import Sequence

    from driftpin.comparison.facts import Divergence, TraceComparison
    from driftpin.environment.difference import FactDifference
    from driftpin.environment.environment import Environment
    from driftpin.store.baselines import Baseline
    from driftpin.store.replay import Replay
    from driftpin.verdict.crowd import Crowd
    from driftpin.verdict.diagnosis import Diagnosis
    from driftpin.verdict.outcome import CanaryVerdict
    from driftpin.verdict.shift import Shift
    from driftpin.verdict.texts import Texts
    from driftpin.workflow.assess import Assessment
    from driftpin.workflow.references import Reference

COMPARE, REPLAY, REPLAYS = "driftpin.compare/1", "driftpin.replay/1", "driftpin.replays/1"
ENVIRONMENT, DIFFERENCE = "driftpin.environment/1", "driftpin.environment_difference/1"
BASELINES = "driftpin.baselines/1"


def assessment(found: Assessment, *, strict: bool = False, comparing: bool = True, text: bool = True) -> dict[str, Any]:
    """`driftpin compare`; `text = False` leaves out what models and prompts say."""
    verdict = found.verdict
    return {
        "schema": COMPARE,
        "verdict": verdict.kind.value,
        "severity": verdict.severity.value,
        "exit_code": exit_code(verdict.kind, strict=strict, comparing=comparing),
        "headline": verdict.headline,
        "baseline": None if found.baseline is None else reference(found.baseline),
        "candidate": reference(found.candidate),
        "class": None if verdict.diagnosis is None or verdict.diagnosis.word is None else verdict.diagnosis.word.value,
        "diagnosis": diagnosis(verdict.diagnosis),
        "shift": shift(verdict.shift),
        "texts": texts(verdict.texts, verdict.crowds),
        "outcomes": {canary.canary: _canary(canary, text) for canary in verdict.canaries},
        "first_divergence": _first(found, text),
        "localisation": None if verdict.place is None else asdict(verdict.place),
        "movement": _movements(found),
        "environment_difference": environment_difference(found),
        "attribution": None if found.attribution is None else found.attribution.to_json(),
        "last_good": found.since.last_good,
        "first_bad": found.since.first_bad,
        "reproduced": found.reproduced,
        "remarks": list(verdict.remarks),
        "unseen": list(verdict.unseen),
        "next": next_commands(found),
    }


def replay_result(found: Assessment, replay: Replay, *, strict: bool, text: bool) -> dict[str, Any]:
    """`driftpin replay`: the assessment and what was recorded."""
    body = assessment(found, strict=strict, comparing=False, text=text)
    return {**body, "schema": REPLAY, "replay": replay.id, "trace_set": replay.trace_set}


def reference(found: Reference) -> dict[str, Any]:
    """Where a side's traces come from."""
    return {
        "label": found.label,
        "replay": found.replay.id,
        "target": found.replay.target,
        "trace_set": found.trace_set,
        "baseline": None if found.baseline is None else found.baseline.number,
    }


def replay(row: Replay) -> dict[str, Any]:
    """One row of `driftpin replays`."""
    return {
        "replay": row.id,
        "target": row.target,
        "revision": row.revision_number,
        "status": row.status.value,
        "reason": row.reason,
        "verdict": row.verdict,
        "summary": dict(row.summary),
        "trace_set": row.trace_set,
        "digests": row.digests,
        "device_class": row.device_class,
        "host": row.host,
        "purpose": row.purpose,
        "created_at": _time(row.created_at),
        "started_at": _time(row.started_at),
        "finished_at": _time(row.finished_at),
    }


def baseline(row: Baseline, current: bool) -> dict[str, Any]:
    """One row of `driftpin baseline list`."""
    return {
        "target": row.target,
        "number": row.number,
        "current": current,
        "device_class": row.device_class,
        "replay": row.replay_id,
        "trace_set": row.trace_set,
        "bundle": row.bundle,
        "blessed_by": row.blessed_by,
        "reason": row.reason,
        "created_at": _time(row.created_at),
    }


def environment(env: Environment) -> dict[str, Any]:
    """`driftpin env show`: facts by section, unknown ones as {"unknown": reason}, known ones as {"value": …}."""
    return {"schema": ENVIRONMENT, "digests": env.digests, **env.hashed_to_json(), "context": env.context_to_json()}


def differences(found: tuple[FactDifference, ...]) -> list[dict[str, Any]]:
    """Facts that differ, likeliest to change numbers first."""
    return [
        {
            "section": fact.section.value,
            "name": fact.name,
            "kind": fact.kind.value,
            "before": None if fact.before is None else fact_to_json(fact.before),
            "after": None if fact.after is None else fact_to_json(fact.after),
        }
        for fact in found
    ]


def environment_difference(found: Assessment) -> dict[str, Any] | None:
    """Whether the three sections agree, and which facts do not."""
    if found.equalities is None:
        return None
    agreed = {section.value: found.equalities[section].value for section in Section}
    return {"equality": agreed, "facts": differences(found.differences)}


def next_commands(found: Assessment) -> list[str]:
    """What a person would run next, as commands."""
    kind, target, id_ = found.verdict.kind, found.candidate.replay.target, found.candidate.replay.id
    if kind is VerdictKind.UNBLESSED:
        return [f"driftpin baseline bless {target}"]
    if kind is VerdictKind.MATCH or found.baseline is None:
        return []
    first = found.verdict.first
    shown = [f"driftpin show {id_} --canary {first.canary}"] if first else []
    label = found.baseline.label if found.baseline.baseline is None else f"{target}@{found.baseline.baseline.number}"
    unproven = found.reproduced is None and kind in CHANGES
    repeat = [f"driftpin replay {target} --confirm"] if unproven else []
    return [*shown, f"driftpin env diff {label} {id_}", f"driftpin report {label} {id_}", *repeat]


def diagnosis(found: Diagnosis | None) -> dict[str, Any] | None:
    """Rounding, native-path defect, or model or input change, with what it rests on."""
    if found is None:
        return None
    return {
        "word": None if found.word is None else found.word.value,
        "sentence": found.sentence,
        "absent": found.absent,
        "ratio": _number(found.ratio),
        "farther": found.farther,
        "asked": found.asked,
        "p_value": _number(found.p_value),
        "reference_shift": _number(found.reference_shift),
        "reference_limit": _number(found.reference_limit),
        "label": found.label,
    }


def shift(found: Shift | None) -> dict[str, Any] | None:
    """How far the numbers moved against the floors; log-probabilities in nats, D and F in logits."""
    if found is None:
        return None
    numbers = {
        "mean": found.mean,
        "yardstick": found.yardstick,
        "times": found.times,
        "limit": found.limit,
        "worst_mean": found.worst_mean,
        "worst_yardstick": found.worst_yardstick,
        "repeat_floor": found.repeat_floor,
        "largest_movement": found.largest_movement,
        "tie_limit": found.tie_limit,
    }
    words = {"probe": found.probe.value, "canaries": found.canaries, "worst": found.worst}
    return words | {name: _number(value) for name, value in numbers.items()}


def texts(found: Texts | None, told: Sequence[Crowd]) -> dict[str, Any] | None:
    """How many canaries' texts changed, how many rounding alone changes, and what is counted against it."""
    return None if found is None else {**asdict(found), "counts": [_crowd(crowd) for crowd in told]}


def _crowd(told: Crowd) -> dict[str, Any]:
    numbers = {"count": len(told.found), "asked": told.asked, "p_value": told.p_value}
    return {"what": told.what, **numbers, "significant": told.significant, "doubtful": told.doubtful}


def _canary(verdict: CanaryVerdict, text: bool) -> dict[str, Any]:
    """Sentences quote outputs and prompt ids where text may go."""
    return {
        "outcome": verdict.outcome.value,
        "all": sorted(outcome.value for outcome in verdict.outcomes),
        "findings": [
            {
                "outcome": finding.outcome.value,
                "execution": None if finding.key is None else str(finding.key),
                "why": finding.told(text=text),
            }
            for finding in verdict.findings
        ],
    }


def _first(found: Assessment, text: bool) -> dict[str, Any] | None:
    first = found.verdict.first
    if first is None:
        return None
    return {
        "canary": first.canary,
        "probe": first.probe,
        "shape": first.shape,
        "limit": _number(first.limit),
        **divergence(first.divergence, text),
    }


def divergence(at: Divergence, text: bool) -> dict[str, Any]:
    """A divergence; D is `movement`, in logits. Token ids are text to whoever has the tokenizer."""
    shown = {
        "baseline_id": at.baseline_id,
        "candidate_id": at.candidate_id,
        "before": at.before,
        "baseline_text": at.baseline_text,
        "candidate_text": at.candidate_text,
    }
    return {
        "position": at.position,
        "baseline_margin": _number(at.baseline_margin),
        "candidate_margin": _number(at.candidate_margin),
        "movement": _number(at.movement),
        "movement_missing": at.missing,
        **(shown if text else {}),
    }


def _movements(found: Assessment) -> list[dict[str, Any]]:
    return [_moved(trace) for trace in (found.comparison.changed if found.comparison else ()) if trace.movement]


def _moved(trace: TraceComparison) -> dict[str, Any]:
    moved = trace.movement
    if moved is None:
        return {}
    return {
        "execution": str(trace.key),
        "positions": moved.positions,
        "moved": moved.moved,
        "first_moved": moved.first_moved,
        "mean_abs_logprob": json_float(moved.mean_abs_logprob),
        "max_abs_logprob": json_float(moved.max_abs_logprob),
        "max_pair": _number(moved.max_pair),
    }


def _number(value: float | None) -> float | str | None:
    return None if value is None else json_float(value)


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
