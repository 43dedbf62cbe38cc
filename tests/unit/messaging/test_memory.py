"""Protects client and server on kombu's memory transport, as in the demo, in simulated time."""

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.domain import Notification, NotificationStatus, NotificationType, RequestContext
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.server import Server
from tests.servers import eventually
from tests.simulated_clock import SimulatedClock

_NOTIFICATION = Notification(
    id=1,
    notification_uuid="d1ce9cd6-c1e1-4284-a178-f45f208931f8",
    generated_time=datetime(2026, 11, 30, 17, 28, 52),
    source_host_uuid="6a4c5d5c-7e34-4ec7-8497-43dc8bb54108",
    type=NotificationType.VM,
    payload={"event": "LIFECYCLE"},
    status=NotificationStatus.NEW,
)


class _Handler:
    def __init__(self) -> None:
        self.received: list[Notification] = []
        self.failure: Exception | None = None

    def process_notification(
        self, context: RequestContext, notification: Notification, acknowledge: Callable[[], None]
    ) -> None:
        self.received.append(notification)
        acknowledge()
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def broker(conf: cfg.ConfigOpts) -> Broker:
    conf.set_override("masakari_topic", f"topic-{uuid.uuid4()}")  # the memory is the process'
    return Broker(conf)


@pytest.fixture
def client(broker: Broker) -> Iterator[EngineClient]:
    made = EngineClient(broker, timeout=5)
    yield made
    made.close()


def test_requests_come_through_before_and_after_the_server_starts(
    broker: Broker, client: EngineClient, clock: SimulatedClock
):
    handler = _Handler()
    server = Server(broker, handler, threads=2, clock=clock)
    client.process_notification(RequestContext(request_id="req-1"), _NOTIFICATION)

    server.start()
    eventually(lambda: len(handler.received) == 1)
    client.process_notification(RequestContext(request_id="req-2"), _NOTIFICATION)
    eventually(lambda: len(handler.received) == 2)
    server.close()

    assert handler.received == [_NOTIFICATION, _NOTIFICATION]
    eventually(lambda: not [each for each in threading.enumerate() if "rpc-s" in each.name])


def test_a_server_that_never_started_can_be_closed(broker: Broker, clock: SimulatedClock):
    server = Server(broker, _Handler(), threads=2, clock=clock)

    server.stop_consuming()
    server.close()


def test_a_stopped_clock_ends_the_waits_for_a_broker(conf: cfg.ConfigOpts, clock: SimulatedClock):
    conf.set_override("transport_url", "rabbit://127.0.0.1:1/")
    server = Server(Broker(conf), _Handler(), threads=2, clock=clock)
    server.start()
    eventually(lambda: clock.now > 100)

    clock.stop()

    eventually(lambda: not [each for each in threading.enumerate() if each.name == "rpc-server"])
    server.close()


def test_after_a_close_nothing_is_sent_and_nobody_waits_any_longer(broker: Broker):
    client = EngineClient(broker, timeout=30, response_timeout=30)
    context, start = RequestContext(request_id="req-1"), threading.Barrier(9)

    def ask(method: Callable[..., object]) -> None:
        start.wait()
        with contextlib.suppress(errors.BrokerUnavailable):
            while True:
                method(context, _NOTIFICATION)

    with ThreadPoolExecutor(8) as pool:
        methods = [client.process_notification, client.recovery_workflow_details] * 4
        asked = [pool.submit(ask, method) for method in methods]
        start.wait()
        client.close()

        assert [each.result(5) for each in asked] == [None] * 8
    names = {each.name for each in threading.enumerate()}
    assert not names & {"rpc-client", "rpc-answers"}
