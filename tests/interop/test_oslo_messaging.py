"""Protects that oslo.messaging itself, on the other side, understands us and is understood."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.clock import SystemClock
from masakari_ng.domain import Notification, NotificationType, RequestContext, TaskDetails
from masakari_ng.messaging import objects
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.events import Events
from masakari_ng.messaging.server import Server
from tests.servers import eventually

from .conftest import MakePeer

_DATA = Path(__file__).parents[1] / "unit/messaging/data"
_CALL = json.loads((_DATA / "call-details-vm.json").read_text())["message"]
_NOTIFICATION = objects.notification_from_wire(_CALL["args"]["notification"])
_DETAILS, _PROCESS = _CALL["method"], "process_notification"
_CONTEXT = RequestContext(request_id="req-1", user_id="u1", roles=("admin",))
_TASK = TaskDetails("StopInstanceTask", "SUCCESS", 1.0, ())


class _Handler:
    def __init__(self) -> None:
        self.received: list[tuple[RequestContext, Notification]] = []
        self.go_on = threading.Event()

    def process_notification(
        self, context: RequestContext, notification: Notification, acknowledge: Callable[[], None]
    ) -> None:
        self.received.append((context, notification))
        acknowledge()
        self.go_on.wait(30)

    def details(self, notification: Notification) -> list[TaskDetails]:
        if notification.type is not NotificationType.VM:
            raise errors.NotificationNotFound(notification.notification_uuid)
        return [_TASK]


@pytest.fixture
def handler(conf: cfg.ConfigOpts) -> Iterator[_Handler]:
    """Our engine."""
    made = _Handler()
    server = Server(Broker(conf), made, threads=4, clock=SystemClock(), details=made.details)
    server.start()
    yield made
    made.go_on.set()
    server.close()


@pytest.fixture
def client(conf: cfg.ConfigOpts) -> Iterator[EngineClient]:
    """Our API."""
    made = EngineClient(Broker(conf), timeout=10, response_timeout=20)
    yield made
    made.close()


def _job(method: str, version: str, *, wait: bool = True, **how: Any) -> dict[str, Any]:
    arguments = {"notification": _CALL["args"]["notification"]}
    return {
        "method": method,
        "version": version,
        "arguments": arguments,
        "wait": wait,
        "how": {"timeout": 20, **how} if wait else how,
    }


def test_its_calls_are_answered(handler: _Handler, make_peer: MakePeer):
    (answer,) = make_peer("ask", _job(_DETAILS, "1.1")).wait()

    assert objects.details_from_wire(answer["result"]) == [_TASK]


@pytest.mark.parametrize(
    ("job", "failure", "text"),
    [
        (_job(_DETAILS, "1.1") | {"arguments": {}}, "TypeError", "missing 1 required positional"),
        (_job("no_such_method", "1.1"), "NoSuchMethod", "Endpoint does not support RPC method"),
        (_job(_DETAILS, "2.0"), "UnsupportedVersion", "Endpoint does not support RPC version 2.0"),
    ],
    ids=["arguments", "method", "version"],
)
def test_it_understands_our_failures(
    handler: _Handler, make_peer: MakePeer, job: dict[str, Any], failure: str, text: str
):
    (answer,) = make_peer("ask", job).wait()

    assert answer["failure"] == failure
    assert text in answer["message"]


@pytest.mark.parametrize(
    "how", [{}, {"server": "engine-host-1"}, {"fanout": True}], ids=["shared", "own", "fanout"]
)
def test_its_casts_arrive(handler: _Handler, make_peer: MakePeer, conf: Any, how: dict[str, Any]):
    make_peer("ask", _job(_PROCESS, "1.0", wait=False, **how)).wait()

    eventually(lambda: len(handler.received) == 1)
    context, notification = handler.received[0]
    assert (context.request_id, notification) == ("req-peer", _NOTIFICATION)


def test_it_waits_for_as_long_as_we_show_signs_of_life(handler: _Handler, make_peer: MakePeer):
    job = _job(_PROCESS, "1.0", timeout=30, call_monitor_timeout=2)
    peer = make_peer("ask", job)
    eventually(lambda: len(handler.received) == 1, timeout=60)

    threading.Timer(5, handler.go_on.set).start()

    assert peer.wait() == [{"result": None}]


def test_our_requests_are_understood(client: EngineClient, make_peer: MakePeer):
    peer = make_peer("serve")

    client.process_notification(_CONTEXT, _NOTIFICATION)
    _, received = peer.wait(2)
    details = client.recovery_workflow_details(_CONTEXT, _NOTIFICATION)

    assert received["notification"] == _CALL["args"]["notification"]
    assert received["context"]["user"] == "u1"
    assert details == []


def test_its_failures_are_understood(client: EngineClient, make_peer: MakePeer):
    make_peer("serve")
    call = json.loads((_DATA / "call-details-process.json").read_text())["message"]
    notification = objects.notification_from_wire(call["args"]["notification"])

    with pytest.raises(errors.RemoteFailure, match=r"builtins\.ValueError: no details of"):
        client.recovery_workflow_details(_CONTEXT, notification)


@pytest.mark.parametrize("driver", ["messagingv2", "messaging"])
def test_its_listener_gets_our_events(conf: cfg.ConfigOpts, make_peer: MakePeer, driver: str):
    conf.set_override("driver", [driver], "oslo_messaging_notifications")
    peer = make_peer("listen")
    events = Events.from_conf(conf)

    events.emit(_CONTEXT, "notification.process.start", _NOTIFICATION)
    events.emit(_CONTEXT, "notification.process.error", _NOTIFICATION, "no")

    told = {line["priority"]: line for line in peer.wait(3)[1:]}
    events.close()
    assert told["info"]["event"] == "notification.process.start"
    assert told["error"]["event"] == "notification.process.error"
    assert told["info"]["publisher"].startswith("masakari-engine:")
    assert told["info"]["payload"]["masakari_object.name"] == "NotificationApiPayload"
