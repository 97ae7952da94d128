"""Causes, keys, who is told, and the body of an alert; the scheduler's settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from monitor_samples import START, Clock, write_config

from driftpin.comparison.facts import Comparison, Divergence, Movement, TraceComparison
from driftpin.environment.difference import Change, FactDifference
from driftpin.environment.environment import Equality, Section
from driftpin.environment.fact import Unknown
from driftpin.errors import ConfigError
from driftpin.settings.load import load_config
from driftpin.settings.policy import Policy, Severity
from driftpin.store import Store
from driftpin.store.incident import IncidentKind
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.trace.plan import Plan
from driftpin.trace.probe import Probe, TraceKey
from driftpin.verdict.diagnosis import NO_REFERENCE
from driftpin.verdict.judge import NO_YARDSTICK, Circumstances, judge, unblessed
from driftpin.workflow.assess import Assessment
from driftpin.workflow.confirm import Confirmation, worth_confirming
from driftpin.workflow.references import Reference
from monitor import cause
from monitor.channels import signature
from monitor.desk import Desk
from monitor.message import Sighting, alert
from monitor.schedule import Ticks, clock
from monitor.wanted import Wanted, wanted_of

SAME = dict.fromkeys(Section, Equality.SAME)
SECRET_TEXT = "the launch code is 1234"


def replay(name: str, environment: str) -> Replay:
    return Replay(
        id=name,
        target="chat",
        revision_id=1,
        revision_number=1,
        suite_digest="s",
        plan=Plan(),
        status=ReplayStatus.FINISHED,
        reason=None,
        attempt=1,
        host="h",
        device="cpu",
        device_class="fake",
        environment=environment,
        model_digest=None,
        stack_digest=None,
        behaviour_digest=None,
        context=None,
        volatile={},
        trace_set="t",
        created_at=START,
        started_at=None,
        heartbeat_at=None,
        finished_at=None,
        purpose="scheduled",
        series=None,
        due=None,
        baseline_id=None,
        verdict=None,
        summary={},
    )


def reference(name: str, environment: str) -> Reference:
    return Reference(label=name, replay=replay(name, environment), trace_set="t", suite_digest="s")


def flip() -> TraceComparison:
    return TraceComparison(
        key=TraceKey(canary="sea", probe=Probe.DECODE),
        identical=False,
        tokens_equal=False,
        divergence=Divergence(
            position=3,
            baseline_id=7,
            candidate_id=9,
            baseline_margin=0.5,
            candidate_margin=0.25,
            movement=0.75,
            missing=None,
            before=SECRET_TEXT,
            baseline_text="abc",
            candidate_text="xyz",
        ),
        movement=Movement(
            positions=4, moved=4, first_moved=0, mean_abs_logprob=0.125, max_abs_logprob=0.5, max_pair=0.75
        ),
        depth_absent="none",
    )


def found(*changed: TraceComparison, equalities: dict[Section, Equality] | None = None) -> Assessment:
    comparison = Comparison(
        order=("sea", "one"), changed=changed, identical=(TraceKey(canary="one", probe=Probe.DECODE),)
    )
    agreed = equalities or SAME
    circumstances = Circumstances(**{section.value: agreed[section] for section in Section})
    return Assessment(
        verdict=judge(comparison, circumstances, Policy()),
        candidate=reference("r-2", "new"),
        baseline=reference("r-1", "old"),
        comparison=comparison,
        equalities=agreed,
    )


def test_each_verdict_is_a_case_of_one_kind() -> None:
    assert cause.kind_of(found()) is None
    assert cause.kind_of(found(flip())) is IncidentKind.DRIFT
    assert cause.kind_of(Assessment(verdict=unblessed(), candidate=reference("r-2", "new"))) is None
    kinds = {kind for kind in cause.KINDS if cause.KINDS[kind] is IncidentKind.CANNOT_MEASURE}
    assert {kind.value for kind in kinds} == {"invalid", "incomparable", "incomplete"}


@pytest.mark.parametrize(
    ("changed", "suspect"),
    [
        ({Section.BEHAVIOUR}, True),
        ({Section.BEHAVIOUR, Section.STACK}, False),
        ({Section.BEHAVIOUR, Section.MODEL}, False),
        (set(), False),
    ],
)
def test_a_device_is_suspect_only_where_nothing_else_changed(changed: set[Section], suspect: bool) -> None:
    agreed = {s: Equality.DIFFERENT if s in changed else Equality.SAME for s in Section}
    expected = IncidentKind.DEVICE_SUSPECT if suspect else IncidentKind.DRIFT
    assert cause.kind_of(found(flip(), equalities=agreed)) is expected


def test_an_undetermined_stack_makes_no_device_suspect() -> None:
    agreed = {**SAME, Section.BEHAVIOUR: Equality.DIFFERENT, Section.STACK: Equality.UNDETERMINED}
    assert cause.kind_of(found(flip(), equalities=agreed)) is IncidentKind.DRIFT


def test_a_key_is_of_target_kind_and_environments() -> None:
    drift = cause.incident_key("chat", IncidentKind.DRIFT, ("old", "new"))
    others = {
        cause.incident_key("chat", IncidentKind.DRIFT, ("old", "newer")),
        cause.incident_key("chat", IncidentKind.BROKEN, ("old", "new")),
        cause.incident_key("mail", IncidentKind.DRIFT, ("old", "new")),
    }
    assert drift == cause.incident_key("chat", IncidentKind.DRIFT, ("old", "new"))
    assert len({drift, *others}) == 4
    late = [cause.incident_key("chat", IncidentKind.CANNOT_MEASURE, ("old", env)) for env in ("new", "")]
    assert late[0] == late[1]


def test_what_is_worth_confirming() -> None:
    assert worth_confirming(found(flip()).verdict)
    assert not worth_confirming(found().verdict)
    assert not worth_confirming(unblessed())
    assert not worth_confirming(replace(found(flip()).verdict, severity=Severity.NONE))


def sighting(**changes: object) -> Sighting:
    fields = {
        "key": "ab" * 32,
        "kind": IncidentKind.DRIFT,
        "severity": Severity.TICKET,
        "headline": "drift",
        "target": "chat",
        "device": "cpu",
        "host": "h",
        "since": START,
        **changes,
    }
    return Sighting(**fields)  # type: ignore[arg-type]


def test_an_alert_tells_what_and_by_how_much() -> None:
    body = alert(sighting(assessment=found(flip()), confirmation=Confirmation(reproduced=True, replays=("r-3", "r-4"))))
    assert body["canaries"] == {"flip": 1, "identical": 1}
    assert body["movement"] == {
        "executions": 1,
        "mean_abs_logprob": 0.125,
        "max_abs_logprob": 0.5,
        "floor": None,
        "tie_floor": None,
    }
    assert body["first_divergence"]["before"] == SECRET_TEXT
    assert (body["first_divergence"]["baseline_text"], body["first_divergence"]["candidate_text"]) == ("abc", "xyz")
    assert body["first_divergence"]["baseline_margin"] == 0.5
    assert body["confirmation"] == {"reproduced": True, "replays": ["r-3", "r-4"], "reason": None}
    assert body["unseen"] == [
        "Some executions have no layer recording: their place is not seen.",
        NO_YARDSTICK,
        f"Whether this is rounding or a defect: {NO_REFERENCE}.",
    ]
    assert (body["class"], body["diagnosis"]["absent"]) == (None, NO_REFERENCE)
    assert body["next"] == [
        "driftpin show r-2 --canary sea",
        "driftpin env diff r-1 r-2",
        "driftpin report r-1 r-2",
        "driftpin replay chat --confirm",
    ]


def test_hidden_text_leaves_numbers_only() -> None:
    body = alert(sighting(assessment=found(flip()), show_text=False))
    assert SECRET_TEXT not in str(body)
    assert set(body["first_divergence"]) == {
        "canary",
        "probe",
        "limit",
        "position",
        "baseline_margin",
        "candidate_margin",
        "movement",
        "movement_missing",
    }


def test_the_five_likeliest_differences_are_told() -> None:
    facts = tuple(
        FactDifference(section=Section.STACK, name=f"library.{n}", kind=Change.CHANGED, before="1", after="2", rank=n)
        for n in range(7)
    )
    unknown = replace(facts[0], name="library.x", kind=Change.UNDETERMINED, after=Unknown("not installed"))
    body = alert(sighting(differences=(unknown, *facts)))
    assert [fact["name"] for fact in body["environment_difference"]] == [f"library.{n}" for n in range(5)]
    assert body["environment_differences_in_all"] == 8


def test_a_long_title_is_cut() -> None:
    assert len(sighting(headline="x" * 1000).title) == 240


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    one = wanted_of(load_config(write_config(tmp_path), {}))[0]
    return replace(one, routes={"page": ["pager"], "ticket": ["mail"], "info": []})


@pytest.fixture
def desk(sqlite_url: str) -> Iterator[Desk]:
    now = Clock()
    with Store.open(sqlite_url, now=now) as store:
        yield Desk(store=store, now=now)


def told(desk: Desk) -> list[str]:
    waiting = desk.store.deliveries.due(desk.now() + timedelta(days=1000))
    return [d.channel for d in sorted(waiting, key=lambda d: d.id)]


def test_only_what_becomes_louder_is_told_again(desk: Desk, wanted: Wanted) -> None:
    desk.see(wanted, sighting())
    desk.see(wanted, sighting())
    desk.see(wanted, sighting(headline="drift of more"))
    assert told(desk) == ["mail"]
    desk.see(wanted, sighting(severity=Severity.PAGE))
    desk.see(wanted, sighting(severity=Severity.TICKET))
    desk.see(wanted, sighting(severity=Severity.PAGE))
    assert told(desk) == ["mail", "pager"]
    assert desk.store.incidents.list()[0].count == 6
    desk.resolve("chat", cause.CHANGES, "over")
    assert told(desk) == ["mail", "pager", "mail", "pager"]


def test_no_group_becomes_louder_twice_within_the_hour(desk: Desk, wanted: Wanted) -> None:
    all_routed = replace(wanted, routes={**wanted.routes, "info": ["feed"]})
    desk.see(all_routed, sighting(severity=Severity.INFO))
    desk.see(all_routed, sighting(severity=Severity.TICKET))
    desk.see(all_routed, sighting(severity=Severity.PAGE))
    assert told(desk) == ["feed", "mail"]
    desk.see(all_routed, sighting(severity=Severity.TICKET))
    desk.now.forward(hours=1)  # type: ignore[attr-defined]
    desk.see(all_routed, sighting(severity=Severity.PAGE))
    assert told(desk) == ["feed", "mail", "pager"]


@pytest.mark.parametrize("severity", [Severity.INFO, Severity.NONE])
def test_what_nobody_would_be_told_opens_nothing(desk: Desk, wanted: Wanted, severity: Severity) -> None:
    desk.see(wanted, sighting(severity=severity))
    assert desk.store.incidents.list() == []


def test_resolving_spares_other_kinds_and_the_named_key(desk: Desk, wanted: Wanted) -> None:
    for number, kind in enumerate((IncidentKind.DRIFT, IncidentKind.DRIFT, IncidentKind.OVERDUE)):
        desk.see(wanted, sighting(key=f"{number}" * 64, kind=kind))
    desk.resolve("chat", {IncidentKind.DRIFT}, "superseded", but="1" * 64)
    assert [i.key[0] for i in desk.store.incidents.unresolved()] == ["1", "2"]


def test_the_scheduler_drops_no_tick_and_doubles_none(desk: Desk, wanted: Wanted) -> None:
    scheduler = clock(Ticks(store=desk.store, now=desk.now), [wanted, wanted])
    scheduler.start(paused=True)
    try:
        (job,) = scheduler.get_jobs()
        assert (job.misfire_grace_time, job.coalesce, job.max_instances) == (None, True, 1)
        assert (job.next_run_time.minute, job.next_run_time.second) == (0, 0)
        assert job.next_run_time.utcoffset() == timedelta(0)
    finally:
        scheduler.shutdown(wait=False)


def test_wanted_is_taken_from_the_operations(tmp_path: Path) -> None:
    path = write_config(
        tmp_path,
        text="hide",
        target='cron = "0 6 * * 1"\ngrace = "10m"\nbudget = { seconds = 900, when_busy = "wait" }',
    )
    one = wanted_of(load_config(path, {}))[0]
    assert (one.target, one.owner, one.show_text, one.when_busy) == ("chat", "ml-platform", False, "wait")
    assert one.limit_seconds == 900
    assert one.schedule.grace == 600
    assert one.channels(Severity.PAGE) == ["log"]
    assert one.channels(Severity.INFO) == []


@pytest.mark.parametrize(
    "secret", ["", "hunter2", "whsec_", "whsec_abc", "whsec_!!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
)
def test_an_unusable_secret_is_refused_without_telling_it(secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        signature.key_of(secret)
    assert "hunter2" not in str(caught.value)
