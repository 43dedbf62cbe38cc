"""Protects the promise that no request is lost, and that nothing on the bus stops an engine."""

import json
import logging
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.clock import SystemClock
from masakari_ng.domain import Notification, RequestContext
from masakari_ng.messaging import envelope, objects
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.server import Server
from tests.integration.messaging.bus import Bus, Recorder, Wire
from tests.integration.messaging.conftest import Cast, MakeServer
from tests.servers import RabbitMQ, eventually, free_port

MakeRequest = Callable[..., dict[str, Any]]


@pytest.fixture
def go_on() -> threading.Event:
    return threading.Event()


@pytest.fixture
def make_request(
    context: RequestContext, make_notification: Callable[[], Notification]
) -> MakeRequest:
    """Gives the inner message of a request, to be spoilt and sent without our client."""

    def make() -> dict[str, Any]:
        arguments = {"notification": objects.notification_to_wire(make_notification())}
        return envelope.request("process_notification", "1.0", arguments, context)

    return make


def _rpc_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("rpc-")]


def test_a_request_is_acknowledged_when_the_handler_says_so(
    make_server: MakeServer, cast: Cast, pending: Callable[[], int], go_on: threading.Event
):
    handler = Recorder(go_on=go_on)
    make_server(handler)

    notification = cast()

    eventually(lambda: len(handler.calls) == 1)
    context, received = handler.calls[0]
    assert received == notification
    assert (context.request_id, context.user_id) == ("req-1", "u1")
    assert pending() == 1
    handler.acknowledge()
    eventually(lambda: pending() == 0)
    go_on.set()


@pytest.mark.parametrize(
    ("exchange", "key"),
    [("masakari", "ha_engine.engine-host-1"), ("ha_engine_fanout", "")],
    ids=["one-engine", "fanout"],
)
def test_requests_to_one_and_to_all_engines_arrive(
    bus: Bus, make_server: MakeServer, make_request: MakeRequest, exchange: str, key: str
):
    handler = Recorder()
    make_server(handler)

    bus.publish(envelope.pack(make_request()), exchange=exchange, key=key)

    eventually(lambda: len(handler.calls) == 1)


def test_what_a_killed_engine_has_not_acknowledged_is_delivered_again(
    wire: Wire, bus: Bus, make_server: MakeServer, cast: Cast, go_on: threading.Event
):
    handler = Recorder(go_on=go_on)
    make_server(handler)
    cast()
    eventually(lambda: len(handler.calls) == 1)
    handler.acknowledge()
    lost = cast()
    eventually(lambda: len(handler.calls) == 2)

    wire.cut()

    # The engine comes back by itself and stands for another one, too.
    eventually(lambda: len(handler.calls) == 3)
    assert handler.calls[2][1] == lost
    go_on.set()
    eventually(lambda: bus.ready("ha_engine") == 0)


def test_an_acknowledgement_after_the_loss_of_its_connection_does_no_harm(
    wire: Wire,
    make_server: MakeServer,
    cast: Cast,
    pending: Callable[[], int],
    caplog: pytest.LogCaptureFixture,
):
    go_on = threading.Event()
    handler = Recorder(go_on=go_on)
    make_server(handler)
    cast()
    eventually(lambda: len(handler.calls) == 1)
    late = handler.acknowledge
    wire.cut()
    eventually(lambda: len(handler.calls) == 2)

    late()
    cast()
    eventually(lambda: len(handler.calls) == 3)

    assert pending() == 2
    go_on.set()
    eventually(lambda: pending() == 0)
    assert sum("Connection failed" in each for each in caplog.messages) == 1


def test_a_duplicate_is_dropped_once_the_first_is_acknowledged(
    bus: Bus,
    make_server: MakeServer,
    make_request: MakeRequest,
    go_on: threading.Event,
    caplog: pytest.LogCaptureFixture,
):
    body = envelope.pack(make_request() | {"_unique_id": "a" * 32})
    handler = Recorder(go_on=go_on)
    make_server(handler)

    bus.publish(body)
    eventually(lambda: len(handler.calls) == 1)
    bus.publish(body)  # the first is not acknowledged, it might be this one
    eventually(lambda: len(handler.calls) == 2)
    handler.acknowledge()
    bus.publish(envelope.pack(make_request()))  # a sign that the verdict has been passed on
    eventually(lambda: len(handler.calls) == 3)
    bus.publish(body)

    eventually(lambda: any("duplicate" in line for line in caplog.messages))
    assert len(handler.calls) == 3
    go_on.set()


_GOOD = b'{"method": "m", "args": {}, "version": "1.0"}'
_POISON: dict[str, tuple[bytes, dict[str, Any]]] = {
    "no JSON": (b"{", {}),
    "list": (b"[]", {}),
    "empty": (b"", {}),
    "deep": (b"[" * 50_000, {}),
    "no text": (b"\xff\xfe\x00", {}),
    "envelope 2.1": (b'{"oslo.version": "2.1", "oslo.message": "{}"}', {}),
    "no content type": (_GOOD, {"content_type": None}),
    "text/plain": (_GOOD, {"content_type": "text/plain"}),
    "not compressed": (_GOOD, {"headers": {"compression": "application/x-gzip"}}),
    "unknown compression": (_GOOD, {"headers": {"compression": "application/x-zzz"}}),
    "unknown method": (_GOOD, {}),
    "private method": (b'{"method": "_process_notification", "version": "1.0"}', {}),
    "no method": (b"{}", {}),
    "method is no text": (b'{"method": {}}', {}),
    "version null": (b'{"method": "process_notification", "version": null}', {}),
    "version 1": (b'{"method": "process_notification", "version": "1"}', {}),
    "version 1.2": (b'{"method": "process_notification", "version": "1.2"}', {}),
    "version 2.0": (b'{"method": "process_notification", "version": "2.0"}', {}),
    "namespace": (b'{"method": "process_notification", "namespace": "x"}', {}),
    "no arguments": (b'{"method": "process_notification"}', {}),
    "arguments null": (b'{"method": "process_notification", "args": null}', {}),
    "more arguments": (
        b'{"method": "process_notification", "args": {"notification": {}, "extra": 1}}',
        {},
    ),
    "no object": (b'{"method": "process_notification", "args": {"notification": 1}}', {}),
    "bad context": (
        b'{"method": "process_notification", "args": {}, "_context_read_deleted": "zzz"}',
        {},
    ),
    "odd unique id": (b'{"method": "m", "_unique_id": {"a": []}}', {}),
}


def test_bad_messages_are_dropped_and_stop_nothing(
    bus: Bus,
    make_server: MakeServer,
    cast: Cast,
    pending: Callable[[], int],
    caplog: pytest.LogCaptureFixture,
):
    handler = Recorder()
    make_server(handler)

    for body, properties in _POISON.values():
        bus.publish(body, **properties)
    cast()

    eventually(lambda: len(handler.calls) == 1)
    eventually(lambda: pending() == 0)
    names = ("masakari_ng.messaging.server", "masakari_ng.messaging.consumer")
    told = [each for each in caplog.records if each.name in names]
    assert sum(each.levelno >= logging.WARNING for each in told) == len(_POISON) - 1  # empty: none
    assert not [each for each in told if each.exc_info]


@pytest.mark.parametrize(
    ("properties", "changes"),
    [
        ({"properties": {"delivery_mode": 1}}, {}),
        ({"priority": 5}, {}),
        ({"headers": {"extra": "x"}}, {}),
        ({"headers": {"compression": "application/x-gzip"}}, {}),
        ({}, {"version": "1.1"}),
        ({}, {"more": "x", "namespace": None, "_unique_id": None}),
    ],
    ids=str,
)
def test_unusual_requests_are_accepted(
    bus: Bus,
    make_server: MakeServer,
    make_request: MakeRequest,
    properties: dict[str, Any],
    changes: dict[str, str],
):
    handler = Recorder()
    make_server(handler)
    body = envelope.pack(make_request() | changes)
    compressed = "compression" in properties.get("headers", {})

    bus.publish(zlib.compress(body) if compressed else body, **properties)

    eventually(lambda: len(handler.calls) == 1)


def test_a_request_without_envelope_and_version_is_accepted(
    bus: Bus, make_server: MakeServer, make_request: MakeRequest
):
    handler = Recorder()
    make_server(handler)
    request = make_request()
    del request["version"]

    bus.publish(json.dumps(request))

    eventually(lambda: len(handler.calls) == 1)


def test_a_handler_that_fails_is_logged_and_its_message_does_not_come_again(
    make_server: MakeServer,
    cast: Cast,
    pending: Callable[[], int],
    caplog: pytest.LogCaptureFixture,
):
    handler = Recorder(failure=RuntimeError("out of order"))
    make_server(handler)

    notification = cast()
    eventually(lambda: len(handler.calls) == 1)
    eventually(lambda: pending() == 0)
    cast()
    eventually(lambda: len(handler.calls) == 2)

    logged = next(each for each in caplog.records if each.exc_info)
    assert notification.notification_uuid in logged.getMessage()
    assert "out of order" in str(logged.exc_info)


def test_stop_gives_back_what_has_not_begun_and_still_acknowledges_the_rest(
    bus: Bus,
    make_server: MakeServer,
    cast: Cast,
    pending: Callable[[], int],
    go_on: threading.Event,
):
    handler = Recorder(go_on=go_on)
    server = make_server(handler, threads=1)
    for _ in range(3):
        cast()
    eventually(lambda: len(handler.calls) == 1)
    eventually(lambda: bus.ready("ha_engine") == 0)

    server.stop_consuming()

    eventually(lambda: (bus.ready("ha_engine"), bus.consumers("ha_engine")) == (2, 0))
    assert pending() == 3
    go_on.set()
    eventually(lambda: pending() == 2)
    server.close()
    assert len(handler.calls) == 1
    eventually(lambda: _rpc_threads() == ["rpc-client"])


def test_a_handler_that_is_stopped_leaves_its_message_to_another_engine(
    bus: Bus, make_server: MakeServer, cast: Cast, go_on: threading.Event
):
    handler = Recorder(go_on=go_on, failure=errors.Stopped("The service is stopping"))
    server = make_server(handler)
    cast()
    eventually(lambda: len(handler.calls) == 1)

    server.stop_consuming()
    go_on.set()

    eventually(lambda: bus.ready("ha_engine") == 1)


def test_consumes_again_after_the_broker_was_killed(
    rabbitmq: RabbitMQ, bus: Bus, make_server: MakeServer, cast: Cast
):
    handler = Recorder()
    make_server(handler)
    cast()
    eventually(lambda: len(handler.calls) == 1)

    rabbitmq.kill()
    rabbitmq.start()

    queues = ("ha_engine", "ha_engine.engine-host-1")
    eventually(lambda: [bus.consumers(queue) for queue in queues] == [1, 1], timeout=40)
    cast()
    eventually(lambda: len(handler.calls) == 2)


def test_consumes_again_when_a_connection_has_fallen_silent(
    conf: cfg.ConfigOpts,
    wire: Wire,
    make_server: MakeServer,
    cast: Cast,
    caplog: pytest.LogCaptureFixture,
):
    conf.set_override("heartbeat_timeout_threshold", 1, "oslo_messaging_rabbit")
    handler = Recorder()
    make_server(handler)

    wire.freeze()
    eventually(lambda: "Too many heartbeats missed" in caplog.text)

    cast()
    eventually(lambda: len(handler.calls) == 1)


def test_consumes_again_when_its_queue_was_deleted(bus: Bus, make_server: MakeServer, cast: Cast):
    handler = Recorder()
    make_server(handler)

    bus.delete("ha_engine")

    eventually(lambda: bus.consumers("ha_engine") == 1)
    cast()
    eventually(lambda: len(handler.calls) == 1)


def test_starts_without_a_broker_and_waits_for_it(
    rabbitmq: RabbitMQ, bus: Bus, make_server: MakeServer, caplog: pytest.LogCaptureFixture
):
    rabbitmq.kill()
    make_server(Recorder(), consuming=False)
    eventually(lambda: "(retrying in 1.0 seconds)" in caplog.text)

    rabbitmq.start()

    eventually(lambda: bus.consumers("ha_engine") == 1, timeout=40)
    assert "guest:guest" not in caplog.text


@pytest.mark.parametrize("broker", ["closed", "silent"])
def test_ends_promptly_without_a_broker(conf: cfg.ConfigOpts, wire: Wire, broker: str):
    wire.swallow()
    port = free_port() if broker == "closed" else wire.port
    conf.set_override("transport_url", f"rabbit://127.0.0.1:{port}/")
    server = Server(Broker(conf), Recorder(), threads=2, clock=SystemClock())
    server.start()
    eventually(lambda: "rpc-server" in _rpc_threads())

    begin = time.monotonic()
    server.stop_consuming()
    server.close()

    assert time.monotonic() - begin < 5
    eventually(lambda: not _rpc_threads())
