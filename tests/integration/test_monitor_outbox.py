"""The outbox against a real receiver that fails in the ways in which receivers fail; on both databases."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import structlog
from monitor_samples import SECRET, START, Clock, receiving, verified_now

from driftpin.settings.secret import Secret, Source
from driftpin.store import Store
from driftpin.store.deliveries import DeliveryState
from driftpin.store.incident import IncidentKind
from monitor.channels.channel import DeliveryError, Message
from monitor.channels.log import LogChannel
from monitor.channels.webhook import WebhookChannel
from monitor.outbox import Courier

KEY = "ab" * 32


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(database_url: str, clock: Clock) -> Iterator[Store]:
    with Store.open(database_url, now=clock) as opened:
        yield opened


@pytest.fixture
def secret(tmp_path: Path) -> Secret:
    (tmp_path / "secret").write_text(SECRET)
    return Secret(source=Source.FILE, name=str(tmp_path / "secret"))


def opened(store: Store, channels: tuple[str, ...] = ("hook",), key: str = KEY) -> int:
    alert = {"schema": "driftpin.alert/1", "key": key, "kind": "drift", "target": "chat"}
    incident, _ = store.incidents.open_or_update(
        key,
        target="chat",
        kind=IncidentKind.DRIFT,
        severity="page",
        title="chat: drift",
        body={"alert": alert},
        channels=channels,
    )
    return incident.id


def courier(store: Store, clock: Clock, url: str, secret: Secret | None) -> Courier:
    channel = WebhookChannel(url=url, secret=secret, timeout_seconds=2)
    return Courier(store=store, name="hook", channel=channel, now=clock, chance=lambda: 0.0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_receiver_that_is_down_and_comes_back_misses_nothing(store: Store, clock: Clock, secret: Secret) -> None:
    port = free_port()
    sender = courier(store, clock, f"http://127.0.0.1:{port}/hook?token=hunter2", secret)
    opened(store)
    assert sender.deliver_due() == 0
    assert sender.deliver_due() == 0  # not before its time
    (failed,) = store.deliveries.due(clock() + timedelta(days=1))
    assert (failed.state, failed.attempts) == (DeliveryState.FAILED, 1)
    assert failed.last_error == "the receiver could not be reached (ConnectError)"

    with receiving(port) as receiver:
        clock.forward(minutes=1)
        assert sender.deliver_due() == 1
    assert receiver.ids == [failed.idempotency_key]
    assert store.deliveries.get(failed.id).state is DeliveryState.SENT


def test_a_receiver_that_fails_after_it_took_the_message_sees_the_same_id(
    store: Store, clock: Clock, secret: Secret
) -> None:
    opened(store)
    with receiving() as receiver:
        receiver.answers = [500, 204]
        sender = courier(store, clock, receiver.url, secret)
        assert sender.deliver_due() == 0
        clock.forward(minutes=1)
        assert sender.deliver_due() == 1
    assert receiver.ids[0] == receiver.ids[1]
    assert receiver.got[0][1] == receiver.got[1][1]
    assert receiver.got[0][0]["webhook-timestamp"] != receiver.got[1][0]["webhook-timestamp"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("90", 90),
        (format_datetime(START + timedelta(seconds=300), usegmt=True), 300),
        ("999999", 6 * 3600),
        ("soon", 2.5),
        (None, 2.5),
    ],
)
def test_retry_after_is_heeded_within_bounds(
    store: Store, clock: Clock, secret: Secret, value: str | None, seconds: float
) -> None:
    opened(store)
    with receiving() as receiver:
        receiver.answers = [(429, {"retry-after": value} if value else {}), 204]
        sender = courier(store, clock, receiver.url, secret)
        sender.deliver_due()
        (waiting,) = store.deliveries.due(clock() + timedelta(days=1))
        assert waiting.next_at - clock() == timedelta(seconds=seconds)
        assert waiting.state is DeliveryState.FAILED
        clock.forward(seconds=seconds)
        assert sender.deliver_due() == 1


@pytest.mark.parametrize(("status", "dead"), [(400, True), (404, True), (410, True), (408, False), (425, False)])
def test_only_refusals_for_good_are_final(store: Store, clock: Clock, secret: Secret, status: int, dead: bool) -> None:
    opened(store)
    with receiving() as receiver:
        receiver.answers = [status]
        courier(store, clock, receiver.url, secret).deliver_due()
    counts = store.deliveries.counts()
    assert counts[DeliveryState.DEAD if dead else DeliveryState.FAILED] == 1


def test_a_redirect_is_not_followed(store: Store, clock: Clock, secret: Secret) -> None:
    opened(store)
    with receiving() as other, receiving() as receiver:
        receiver.answers = [(307, {"location": other.url})]
        courier(store, clock, receiver.url, secret).deliver_due()
        assert other.got == []
    assert store.deliveries.counts()[DeliveryState.DEAD] == 1


def test_the_end_is_not_told_before_the_beginning(store: Store, clock: Clock, secret: Secret) -> None:
    incident = opened(store)
    with receiving() as receiver:
        receiver.answers = [503]
        sender = courier(store, clock, receiver.url, secret)
        sender.deliver_due()
        store.incidents.resolve(incident, "it is well", ["hook"])
        assert sender.deliver_due() == 0
        clock.forward(minutes=1)
        assert [sender.deliver_due(), sender.deliver_due()] == [1, 1]
    assert [body["status"] for _, body in receiver.got] == ["firing", "firing", "resolved"]
    assert receiver.got[2][1]["resolved_because"] == "it is well"


def test_one_stuck_incident_does_not_hold_up_another(store: Store, clock: Clock, secret: Secret) -> None:
    opened(store)
    with receiving() as receiver:
        receiver.answers = [503]
        sender = courier(store, clock, receiver.url, secret)
        sender.deliver_due()
        opened(store, key="cd" * 32)
        assert sender.deliver_due() == 1


def test_a_dead_channel_holds_up_no_other(store: Store, clock: Clock, secret: Secret) -> None:
    opened(store, ("hook", "log"))
    courier(store, clock, f"http://127.0.0.1:{free_port()}/", secret).deliver_due()
    with structlog.testing.capture_logs() as lines:
        assert Courier(store=store, name="log", channel=LogChannel(), now=clock).deliver_due() == 1
    assert [(line["action"], line["event"], line["severity"]) for line in lines] == [
        ("alert", "firing: chat: drift", "page")
    ]


def test_two_couriers_of_one_channel_send_once(store: Store, clock: Clock, secret: Secret) -> None:
    opened(store)
    with receiving() as receiver:
        first, second = (courier(store, clock, receiver.url, secret) for _ in range(2))
        (delivery,) = store.deliveries.due(clock())
        assert first._attempt(delivery) is True
        assert second._attempt(delivery) is False
    assert len(receiver.got) == 1


def test_neither_address_nor_secret_is_told(
    store: Store, clock: Clock, secret: Secret, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong, on whatever way out."""
    address = tmp_path / "url"
    hook = Secret(source=Source.FILE, name=str(address))
    sender = Courier(
        store=store, name="hook", channel=WebhookChannel(url=hook, secret=secret), now=clock, chance=lambda: 0.5
    )
    opened(store)
    told = []
    with structlog.testing.capture_logs() as lines:
        for wrong in ("ftp://hunter2.example/", "https://[hunter2", "http://hunter2.invalid:99999/", "hunter2", ""):
            address.write_text(wrong)
            clock.forward(hours=2)
            sender.deliver_due()
            (waiting,) = store.deliveries.due(clock() + timedelta(days=1))
            told.append(waiting.last_error)
        address.write_text(f"http://127.0.0.1:{free_port()}/hunter2")
        (tmp_path / "secret").write_text("hunter2")
        clock.forward(hours=2)
        sender.deliver_due()
        (waiting,) = store.deliveries.due(clock() + timedelta(days=1))
        told.append(waiting.last_error)
    assert waiting.attempts == 6
    assert len(lines) == 6
    assert "hunter2" not in json.dumps([told, lines], default=str) + caplog.text
    assert "not usable" in (told[-1] or "")


def test_the_answer_s_body_is_not_read(store: Store, clock: Clock, secret: Secret) -> None:
    opened(store)
    with receiving() as receiver:
        receiver.answers = [(500, {"content-length": "1000000"})]  # whoever waits for that waits in vain
        courier(store, clock, receiver.url, secret).deliver_due()
    (waiting,) = store.deliveries.due(clock() + timedelta(days=1))
    assert waiting.last_error == "the receiver answered 500"


def test_the_library_accepts_the_signature_and_its_time(secret: Secret) -> None:
    with receiving(check=verified_now) as receiver:
        channel = WebhookChannel(url=receiver.url, secret=secret)
        channel.send(Message(id="msg_1", at=datetime.now(UTC), body={"text": "naïve ☃"}))
    assert receiver.got[0][1] == {"text": "naïve ☃"}


def test_a_secret_is_read_again_at_each_attempt(tmp_path: Path, secret: Secret) -> None:
    channel_secret = Path(secret.name)
    seen: list[str] = []
    with receiving(check=lambda headers, data: seen.append(headers["webhook-signature"])) as receiver:
        channel = WebhookChannel(url=receiver.url, secret=secret)
        message = Message(id="msg_1", at=START, body={})
        channel.send(message)
        channel_secret.write_text("whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY")
        channel.send(message)
    assert seen[0] != seen[1]


def test_without_a_secret_a_message_goes_unsigned() -> None:
    with receiving(check=lambda headers, data: "webhook-signature" in headers) as receiver:
        WebhookChannel(url=receiver.url).send(Message(id="msg_1", at=START, body={}))
    assert receiver.got[0][1] is False


def test_a_receiver_that_never_answers_runs_out_of_time() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        channel = WebhookChannel(url=f"http://127.0.0.1:{mute.getsockname()[1]}/", timeout_seconds=0.2)
        with pytest.raises(DeliveryError, match=r"no answer within 0\.2 s") as caught:
            channel.send(Message(id="msg_1", at=START, body={}))
    assert caught.value.permanent is False


def test_a_message_is_given_up_in_the_end(store: Store, clock: Clock, secret: Secret) -> None:
    opened(store)
    attempts = 0
    with receiving() as receiver:
        receiver.answers = [500] * 200
        sender = courier(store, clock, receiver.url, secret)
        while store.deliveries.counts()[DeliveryState.DEAD] == 0:
            sender.deliver_due()
            clock.forward(hours=1)
            attempts += 1
    assert attempts == len(receiver.got) == 120
