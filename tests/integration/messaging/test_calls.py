"""Protects calls: what was recorded of upstream's calls and answers happens on the real broker."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import kombu
import pytest
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.domain import ProgressEntry, RequestContext, TaskDetails
from tests.integration.messaging.bus import Bus, Recorder
from tests.integration.messaging.conftest import MakeClient, MakeNotification, MakeServer
from tests.servers import eventually

_DATA = Path(__file__).parents[2] / "unit/messaging/data"
_GROUP = "oslo_messaging_rabbit"
_DETAILS = [
    TaskDetails(
        name="StopInstanceTask",
        state="SUCCESS",
        progress=1.0,
        progress_details=(ProgressEntry("2026-11-30 17:28:53.306028", 0.3, "Stopping"),),
    )
]
_PROPERTIES = {
    "content_type": "application/json",
    "content_encoding": "utf-8",
    "application_headers": {},
    "delivery_mode": 2,
    "priority": 0,
}

Ask = Callable[..., None]


@pytest.fixture
def replies(bus: Bus) -> str:
    """A queue of a peer."""
    queue = kombu.Queue(f"reply_{uuid.uuid4().hex}", durable=False)
    bus.declare(queue)
    return str(queue.name)


@pytest.fixture
def ask(bus: Bus) -> Ask:
    """Sends a recorded call again, with changes, to be answered in another queue."""

    def send(name: str, queue: str, **changes: Any) -> None:
        message = json.loads((_DATA / f"{name}.json").read_text())["message"]
        again = {"_reply_q": queue, "_unique_id": uuid.uuid4().hex} | changes
        body = {"oslo.version": "2.0", "oslo.message": json.dumps(message | again)}
        bus.publish(json.dumps(body))

    return send


def _inner(frame: Any) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(json.loads(frame.body)["oslo.message"])
    return message


def _details(_notification: object) -> list[TaskDetails]:
    return _DETAILS


def test_an_answer_comes_back(
    make_server: MakeServer,
    make_client: MakeClient,
    make_notification: MakeNotification,
    context: RequestContext,
):
    make_server(Recorder(), details=_details)
    client = make_client()

    with ThreadPoolExecutor(8) as pool:
        ask = client.recovery_workflow_details
        answers = [pool.submit(ask, context, make_notification()) for _ in range(30)]

    assert [answer.result() for answer in answers] == [_DETAILS] * 30


def test_the_request_of_a_call_is_that_of_upstream_and_goes_when_nobody_waits(
    bus: Bus,
    make_client: MakeClient,
    make_notification: MakeNotification,
    context: RequestContext,
):
    client = make_client(response_timeout=1)

    begin = time.monotonic()
    with pytest.raises(errors.NoAnswer):
        client.recovery_workflow_details(context, make_notification())

    assert 1 <= time.monotonic() - begin < 5
    eventually(lambda: bus.ready("ha_engine") == 0)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(client.recovery_workflow_details, context, make_notification())
        frame = bus.take("ha_engine")
    assert frame.properties == _PROPERTIES | {"expiration": "1000"}
    golden = json.loads((_DATA / "call-details-vm.json").read_text())["message"]
    message = _inner(frame)
    assert message.keys() == golden.keys()
    assert (message["method"], message["version"], message["_timeout"]) == (
        golden["method"],
        "1.1",
        None,
    )


@pytest.mark.parametrize(
    "name", ["call-details-vm", "peer-call-unknown-method", "peer-call-object-1.4"]
)
def test_the_frame_of_an_answer_is_that_of_upstream(
    bus: Bus, make_server: MakeServer, replies: str, ask: Ask, name: str
):
    make_server(Recorder(), details=_details)

    ask(name, replies)

    frame = bus.take(replies)
    golden = json.loads((_DATA / f"{name.replace('call-', 'reply-')}.json").read_text())["message"]
    answer = _inner(frame)
    assert frame.properties == _PROPERTIES
    assert frame.delivery_info["exchange"] == ""
    assert answer.keys() == golden.keys()
    assert (answer["_msg_id"], answer["ending"]) == (golden["_msg_id"], True)
    if golden["failure"]:
        told, expected = json.loads(answer["failure"]), json.loads(golden["failure"])
        for key in ("class", "module", "message", "args", "kwargs"):
            assert told[key] == expected[key]


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_recovery_is_answered_at_its_end_and_shows_that_it_lives_if_asked_to(
    bus: Bus, make_server: MakeServer, replies: str, ask: Ask, go_on: threading.Event
):
    handler = Recorder(go_on=go_on)
    make_server(handler)

    ask("peer-call-monitored", replies, _timeout=2)
    ask("peer-call-monitored", replies, _timeout=None, _msg_id="quiet")

    alive = _inner(bus.take(replies))
    assert (alive["ending"], alive["result"], alive["failure"]) == (False, None, None)
    assert alive["_msg_id"] != "quiet"
    go_on.set()
    ends = []
    while len(ends) < 2:
        answer = _inner(bus.take(replies))
        ends += [answer] if answer["ending"] else []
    assert [(each["result"], each["failure"]) for each in ends] == [(None, None)] * 2


def test_a_reply_waits_for_its_queue_and_is_abandoned_in_the_end(
    conf: cfg.ConfigOpts,
    bus: Bus,
    make_server: MakeServer,
    ask: Ask,
    caplog: pytest.LogCaptureFixture,
):
    conf.set_override("kombu_missing_consumer_retry_timeout", 2, _GROUP)
    make_server(Recorder(), details=_details)

    ask("call-details-vm", "reply_late")
    ask("call-details-vm", "reply_never")
    eventually(lambda: bus.ready("ha_engine") == 0)
    bus.declare(kombu.Queue("reply_late", durable=False))

    assert _inner(bus.take("reply_late"))["ending"]
    eventually(lambda: "missing queue (reply_never). Abandoning..." in caplog.text)
    bus.declare(kombu.Queue("reply_never", durable=False))
    ask("call-details-vm", "reply_never")
    ask("call-details-vm", "reply_late")
    bus.take("reply_late")
    assert bus.ready("reply_never") == 0


@pytest.mark.parametrize("wanted", [True, False])
def test_a_ping_is_answered_if_that_is_wanted(
    *, conf: cfg.ConfigOpts, bus: Bus, make_server: MakeServer, replies: str, ask: Ask, wanted: bool
):
    conf.set_override("rpc_ping_enabled", wanted)
    make_server(Recorder())

    ask("call-details-vm", replies, method="oslo_rpc_server_ping", args={}, version="1.0")

    assert _inner(bus.take(replies))["result"] == ("pong" if wanted else None)


def _failure(name: str, code: int, **keywords: str) -> dict[str, Any]:
    told = {"class": name, "module": "masakari.exception", "message": "m", "tb": [], "args": []}
    return {"result": None, "failure": json.dumps(told | {"kwargs": {"code": code, **keywords}})}


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        (["reply-details-no_details"], []),
        ([{"result": "reply-details-no_details"}, {"result": None, "ending": True}], []),
        ([_failure("NotificationNotFound", 404, id="x")], errors.NotificationNotFound),
        ([_failure("MasakariException", 500)], errors.RemoteFailure),
        ([{"result": None, "failure": {"class": "X"}, "ending": True}], errors.RemoteFailure),
        ([{"result": None, "ending": True}], errors.BadMessage),
        ([{"_msg_id": "of nobody", "ending": True}, "reply-details-no_details"], []),
    ],
    ids=["one", "two messages", "not found", "failure", "no text", "no result", "of nobody"],
)
def test_all_kinds_of_answers_are_understood(
    *,
    bus: Bus,
    make_client: MakeClient,
    make_notification: MakeNotification,
    context: RequestContext,
    answers: list[Any],
    outcome: Any,
):
    client = make_client()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.recovery_workflow_details, context, make_notification())
        request = _inner(bus.take("ha_engine"))
        for answer in answers:
            bus.publish(
                json.dumps(_spelled_out(answer, request["_msg_id"])),
                exchange="",
                key=request["_reply_q"],
            )
        if isinstance(outcome, list):
            assert asked.result(20) == outcome
        else:
            assert isinstance(asked.exception(20), outcome)


def test_every_recorded_answer_is_understood(
    bus: Bus,
    make_client: MakeClient,
    make_notification: MakeNotification,
    context: RequestContext,
):
    client = make_client()
    names = sorted(path.stem for path in _DATA.glob("*reply-*.json"))

    for name in names:
        answers: list[Any] = [name]
        if name == "peer-reply-monitored-heartbeat":
            answers.append("reply-details-vm")
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(client.recovery_workflow_details, context, make_notification())
            request = _inner(bus.take("ha_engine"))
            for answer in answers:
                reply = _spelled_out(answer, request["_msg_id"])
                bus.publish(json.dumps(reply), exchange="", key=request["_reply_q"])
            _check_outcome(asked.exception(20), reply)


def _check_outcome(error: BaseException | None, reply: dict[str, Any]) -> None:
    """What a caller gets for a recorded reply: an error for a failure and for no details."""
    if reply["failure"] is not None:
        told = json.loads(reply["failure"])
        assert isinstance(error, errors.RemoteFailure)
        assert f"{told['module']}.{told['class']}: {told['message']}" in str(error)
    elif reply["result"] is None:
        assert isinstance(error, errors.BadMessage)
    else:
        assert error is None


def _spelled_out(answer: Any, message_id: str) -> dict[str, Any]:
    """A reply; a name stands for a recorded one, or for its result."""
    if isinstance(answer, str):
        recorded = json.loads((_DATA / f"{answer}.json").read_text())["message"]
        return recorded | {"_msg_id": message_id}
    if isinstance(answer.get("result"), str):
        return (
            answer
            | {"result": _spelled_out(answer["result"], "")["result"]}
            | {"_msg_id": message_id}
        )
    return {"_msg_id": message_id} | answer


@pytest.mark.parametrize("compression", ["gzip", "bz2"])
def test_bodies_may_be_compressed(
    *,
    conf: cfg.ConfigOpts,
    make_server: MakeServer,
    make_client: MakeClient,
    make_notification: MakeNotification,
    context: RequestContext,
    compression: str,
):
    conf.set_override("kombu_compression", compression, _GROUP)
    make_server(Recorder(), details=_details)

    answer = make_client().recovery_workflow_details(context, make_notification())

    assert answer == _DETAILS
