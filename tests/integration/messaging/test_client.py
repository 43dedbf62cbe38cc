"""Protects the promise that a request reaches a queue, or that its sender learns so in time."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.domain import RequestContext
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from tests.integration.messaging.bus import Bus, Recorder, Wire
from tests.integration.messaging.conftest import Cast, CastWithin, MakeNotification, MakeServer
from tests.servers import RabbitMQ, eventually, free_port


def test_the_frame_is_that_of_upstream(bus: Bus, cast: Cast):
    cast()

    frame = bus.get("ha_engine")
    assert frame.properties == {
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "application_headers": {},
        "delivery_mode": 2,
        "priority": 0,
    }
    assert frame.delivery_info["exchange"] == "masakari"
    assert frame.delivery_info["routing_key"] == "ha_engine"
    message = json.loads(json.loads(frame.body)["oslo.message"])
    assert (message["method"], message["version"]) == ("process_notification", "1.0")
    assert len(message["_unique_id"]) == 32


def test_requests_before_any_engine_are_kept_for_it(bus: Bus, make_server: MakeServer, cast: Cast):
    assert bus.ready("ha_engine") == -1
    sent = [cast(), cast()]
    assert bus.ready("ha_engine") == 2

    handler = Recorder()
    make_server(handler)

    eventually(lambda: len(handler.calls) == 2)
    received = {notification.notification_uuid for _, notification in handler.calls}
    assert received == {notification.notification_uuid for notification in sent}


def test_many_threads_share_a_client(bus: Bus, cast: Cast):
    with ThreadPoolExecutor(16) as pool:
        sent = [pool.submit(cast) for _ in range(200)]
        for each in sent:
            each.result()

    assert bus.ready("ha_engine") == 200


def test_callers_do_not_notice_a_lost_connection(wire: Wire, bus: Bus, cast: Cast):
    cast()

    for _ in range(3):
        wire.cut()
        cast()

    assert bus.ready("ha_engine") == 4


@pytest.fixture
def full_backlog() -> Iterator[int]:
    """A port whose host swallows the packets of further connects."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.fixture
def silent(wire: Wire) -> int:
    """A port where connections are accepted and nothing follows."""
    wire.swallow()
    return wire.port


@pytest.mark.parametrize("broker", ["closed", "full_backlog", "silent", "no such name"])
def test_without_a_broker_callers_learn_so_in_time(
    request: pytest.FixtureRequest,
    conf: cfg.ConfigOpts,
    cast_within: CastWithin,
    caplog: pytest.LogCaptureFixture,
    broker: str,
):
    host = "broker.invalid"
    if broker == "closed":
        host = f"127.0.0.1:{free_port()}"
    elif broker != "no such name":
        host = f"127.0.0.1:{request.getfixturevalue(broker)}"
    conf.set_override("transport_url", f"rabbit://user:secret@{host}/")
    cast = cast_within(1)

    begin = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        failures = [each.exception() for each in [pool.submit(cast) for _ in range(4)]]

    assert time.monotonic() - begin < 3
    assert all(isinstance(each, errors.BrokerUnavailable) for each in failures)
    assert "secret" not in f"{failures}{caplog.text}"


def test_wrong_credentials_are_told_without_the_password(
    conf: cfg.ConfigOpts, cast_within: CastWithin, caplog: pytest.LogCaptureFixture
):
    conf.set_override("transport_url", conf.transport_url.replace("guest:guest", "guest:secret"))
    cast = cast_within(10)

    with pytest.raises(errors.BrokerUnavailable, match="ACCESS_REFUSED") as failure:
        cast()

    assert "secret" not in f"{failure.value}{caplog.text}"


def test_works_again_after_the_broker_was_away(
    rabbitmq: RabbitMQ, bus: Bus, cast_within: CastWithin
):
    cast = cast_within(5)
    cast()

    rabbitmq.kill()
    with pytest.raises(errors.BrokerUnavailable):
        cast()
    rabbitmq.start()
    cast()

    assert bus.ready("ha_engine") == 1  # the queue of before is gone


def _refused(cast: Cast) -> bool:
    try:
        cast()
    except errors.BrokerUnavailable:
        return True
    return False


def test_works_again_after_the_broker_was_frozen(rabbitmq: RabbitMQ, cast_within: CastWithin):
    cast = cast_within(2)
    cast()

    rabbitmq.pause()
    try:
        eventually(lambda: _refused(cast))  # a signal takes its time
        begin = time.monotonic()
        assert all(_refused(cast) for _ in range(4))
        assert time.monotonic() - begin < 4  # callers need not find out anew that it is away
    finally:
        rabbitmq.resume()

    eventually(lambda: not _refused(cast))


def test_the_second_broker_is_found_in_time(
    conf: cfg.ConfigOpts, full_backlog: int, bus: Bus, cast_within: CastWithin
):
    dead = f"rabbit://guest:guest@127.0.0.1:{full_backlog},"
    conf.set_override("transport_url", conf.transport_url.replace("rabbit://", dead))

    for _ in range(4):  # the order is random
        cast_within(3)()

    assert bus.ready("ha_engine") == 4


def test_an_idle_connection_is_kept_alive(
    conf: cfg.ConfigOpts, wire: Wire, cast_within: CastWithin
):
    conf.set_override("heartbeat_timeout_threshold", 1, "oslo_messaging_rabbit")
    cast_within(10)()

    heartbeat = b"\x08\0\0\0\0\0\0\xce"
    eventually(lambda: wire.heard.count(heartbeat) >= 3)

    assert wire.accepted == 1


def test_close_ends_the_thread(
    conf: cfg.ConfigOpts, context: RequestContext, make_notification: MakeNotification
):
    client = EngineClient(Broker(conf), timeout=10)
    client.process_notification(context, make_notification())

    client.close()

    assert not [each for each in threading.enumerate() if each.name == "rpc-client"]
