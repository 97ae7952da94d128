"""The monitor from end to end on the fake engine: real child processes, a real receiver, a clock that a test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from monitor_samples import Clock, House, Receiver, receiving

from driftpin.store import Store
from driftpin.store.replay import Replay, ReplayStatus
from driftpin.workflow import confirm


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


@pytest.fixture
def house(sqlite_url: str, tmp_path: Path, receiver: Receiver) -> Iterator[House]:
    house = House(folder=tmp_path, url=sqlite_url, clock=Clock(), hook=receiver.url)
    yield house
    house.store.close()


@pytest.fixture
def anywhere(database_url: str, tmp_path: Path, receiver: Receiver) -> Iterator[House]:
    """On each database."""
    house = House(folder=tmp_path, url=database_url, clock=Clock(), hook=receiver.url)
    yield house
    house.store.close()


def test_a_drift_is_confirmed_told_once_and_resolved_under_its_key(anywhere: House, receiver: Receiver) -> None:
    house = anywhere
    house.bless()
    good = house.hour()
    assert (good.verdict, house.incidents(), receiver.got) == ("match", [], [])

    house.fault(weight={"block": 1, "by": 1})
    bad = house.hour()
    assert bad.verdict == "drift"
    assert house.incidents() == [("drift", "open", 1)]
    repeats = [r for r in house.store.replays.list("chat") if r.purpose == "confirm"]
    assert [r.trace_set for r in repeats] == [bad.trace_set] * 2
    assert all(r.plan.verify_weights for r in repeats)
    (_, told), *more = receiver.got
    assert more == []
    assert told["schema"] == "driftpin.alert/1"
    assert (told["status"], told["severity"], told["target"], told["owner"]) == (
        "firing",
        "page",
        "chat",
        "ml-platform",
    )
    assert (told["last_good"], told["first_bad"]) == (good.id, bad.id)
    assert told["environment_difference"][0]["name"] == "weights.fake"
    assert (told["class"], told["shift"]["times"] > 2) == ("model_or_input_change", True)
    assert told["because"] == "Likeliest cause: the weight file fake changed."
    assert told["movement"]["floor"] == told["shift"]["yardstick"]
    assert told["canaries"] == {"flip": 2}
    assert told["confirmation"]["reproduced"] is True
    assert told["first_divergence"]["canary"] == "sea"
    assert told["first_divergence"]["baseline_text"] != told["first_divergence"]["candidate_text"]

    house.hour()
    assert house.incidents() == [("drift", "open", 2)]
    assert len(receiver.got) == 1
    assert len([r for r in house.store.replays.list("chat") if r.purpose == "confirm"]) == 2  # proven already

    house.fault()
    assert house.hour().verdict == "match"
    assert house.incidents() == [("drift", "resolved", 2)]
    over = receiver.got[1][1]
    assert (over["status"], over["key"], over["incident"]) == ("resolved", told["key"], told["incident"])
    assert receiver.ids[0] != receiver.ids[1]

    house.hour()
    assert len(receiver.got) == 2


def test_the_reference_runs_once_per_change_not_once_per_hour(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(native_noise={"by": 0.05})
    for _ in range(3):
        assert house.hour().verdict == "drift"
    beside = [r for r in house.store.replays.list("chat", limit=200) if r.purpose == "reference"]
    assert [r.beside for r in beside] == [house.scheduled()[-1].id, house.store.baselines.list("chat")[0].replay_id]
    assert [told["class"] for _, told in receiver.got] == ["native_path_defect"]


def test_rounding_on_a_new_stack_is_known_as_such_and_told_to_nobody(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(rounding=7, facts={"stack": {"library.fake": "2"}})
    seen = house.hour()
    assert seen.verdict == "numeric"
    assert (house.incidents(), receiver.got) == ([], [])
    beside = [r for r in house.store.replays.list("chat", limit=200) if r.beside == seen.id]
    assert len(beside) == 1


def test_a_change_that_does_not_repeat_is_unstable_and_never_drift(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(flaky="process")
    assert house.hour().verdict == "unstable"
    assert house.incidents() == [("unstable", "open", 1)]
    assert [(b["kind"], b["severity"], b["confirmation"]["reproduced"]) for _, b in receiver.got] == [
        ("unstable", "ticket", False)
    ]
    assert house.hour().verdict == "unstable"
    assert house.incidents() == [("unstable", "open", 2)]
    assert len(receiver.got) == 1

    house.fault()
    house.hour()
    assert receiver.told == [("firing", "unstable"), ("resolved", "unstable")]


@pytest.mark.parametrize(
    ("fault", "status"),
    [({"exit": "one"}, "failed"), ({"missing_keys": ["lm_head"]}, "failed"), ({"crash": "one"}, "finished")],
)
def test_what_cannot_be_measured_is_never_drift(
    house: House, receiver: Receiver, fault: dict[str, object], status: str
) -> None:
    house.bless()
    house.fault(**fault)
    assert house.hour().status == status
    assert house.hour().status == status
    assert house.incidents() == [("cannot_measure", "open", 2)]
    assert receiver.told == [("firing", "cannot_measure")]

    house.fault()
    house.hour()
    assert receiver.told == [("firing", "cannot_measure"), ("resolved", "cannot_measure")]
    assert receiver.got[0][1]["key"] == receiver.got[1][1]["key"]


def test_an_open_drift_stays_open_while_nothing_can_be_measured(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(weight={"block": 1, "by": 1})
    house.hour()
    house.fault(exit="one")
    house.hour()
    assert house.incidents() == [("drift", "open", 1), ("cannot_measure", "open", 1)]


def test_blessing_resolves_what_it_accepted(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(weight={"block": 1, "by": 1})
    house.hour()
    house.bless()
    house.monitor().pass_through()
    assert house.incidents() == [("drift", "resolved", 1)]
    assert house.hour().verdict == "match"
    assert receiver.told == [("firing", "drift"), ("resolved", "drift")]
    assert receiver.got[1][1]["resolved_because"] == "baseline 2 was blessed by ada: first look"


def test_another_cause_of_the_same_kind_takes_the_place_of_the_first(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(weight={"block": 1, "by": 1})
    house.hour()
    house.fault(weight={"block": 2, "by": 1})
    house.hour()
    assert house.incidents() == [("drift", "resolved", 1), ("drift", "open", 1)]
    first, second = house.store.incidents.list()
    assert first.key != second.key


def test_broken_numbers_are_broken(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(nan={"block": 2})
    house.hour()
    assert [(b["kind"], b["severity"]) for _, b in receiver.got] == [("broken", "page")]


def test_changed_microprobes_on_the_same_stack_make_the_device_suspect(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(logit_noise=0.5)  # moves the fake's microprobe, and neither model nor stack
    house.hour()
    assert receiver.told == [("firing", "device_suspect")]


def test_an_unblessed_target_is_replayed_and_nobody_is_told(house: House, receiver: Receiver) -> None:
    assert house.hour().status is ReplayStatus.FINISHED
    assert (house.incidents(), receiver.got) == ([], [])


def test_hidden_text_is_in_no_alert(house: House, receiver: Receiver) -> None:
    house.text = "hide"
    house.fault()
    house.bless()
    house.fault(weight={"block": 1, "by": 1})
    house.hour()
    at = receiver.got[0][1]["first_divergence"]
    assert at["canary"] == "sea"
    assert not {"before", "baseline_text", "candidate_text", "baseline_id", "candidate_id"} & set(at)


def test_what_a_worker_said_is_not_told_where_text_is_hidden(
    house: House, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    house.text = "hide"
    house.fault(missing_keys=["hunter2"])
    assert "hunter2" in (house.hour().reason or "")
    assert receiver.told == [("firing", "cannot_measure")]
    assert "hunter2" not in str(receiver.got) + "".join(capsys.readouterr())
    house.text = "show"
    house.fault(missing_keys=["hunter2"])
    house.store.incidents.resolve(1, "to see the next one", [])
    house.hour()
    assert "hunter2" in receiver.got[1][1]["what"]


def test_a_replay_beyond_its_time_limit_failed(house: House, receiver: Receiver) -> None:
    house.target = 'every = "1h"\ngrace = "1s"\nbudget = { seconds = 1 }'
    house.fault(slow=60)
    done = house.hour()
    assert (done.status, done.reason) == ("failed", "the worker was stopped after its time limit of 1 s")
    assert house.incidents() == [("cannot_measure", "open", 1)]


def test_an_interrupted_confirmation_is_taken_up_again(house: House, receiver: Receiver) -> None:
    house.bless()
    house.fault(weight={"block": 1, "by": 1}, slow=0.4)
    house.clock.forward(hours=1)
    monitor = house.monitor()
    monitor.start()
    done = monitor.dispatcher.work()
    assert done is not None
    house.stop.set()
    monitor.evaluator.judge_ended(house.wanted)
    assert house.incidents() == []
    assert [r.status for r in house.store.replays.list("chat") if r.purpose == "confirm"] == ["interrupted"]

    house.stop.clear()
    house.monitor().pass_through()
    assert house.incidents() == [("drift", "open", 1)]
    assert house.store.incidents.list()[0].first_bad == done.id


def test_a_repeat_that_fails_leaves_the_change_unproven(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.bless()
    house.fault(weight={"block": 1, "by": 1})

    def broken(store: Store, url: str, replay: Replay, *rest: object) -> Replay:
        store.replays.stop(replay.id, replay.attempt, ReplayStatus.FAILED, "out of memory")
        return store.replays.get(replay.id)

    monkeypatch.setattr(confirm, "launch", broken)
    house.hour()
    assert house.incidents() == [("cannot_measure", "open", 1)]
    assert "out of memory" in receiver.got[0][1]["what"]
    monkeypatch.undo()
    house.hour()
    assert house.incidents() == [("cannot_measure", "resolved", 1), ("drift", "open", 1)]
