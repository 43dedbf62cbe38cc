"""Broker, client and servers on a virtual host of their own."""

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest
from oslo_config import cfg

from masakari_ng.clock import SystemClock
from masakari_ng.domain import Notification, NotificationStatus, NotificationType, RequestContext
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.dispatcher import Details, Handler
from masakari_ng.messaging.server import Server
from tests.integration.messaging.bus import Bus, Wire
from tests.servers import RabbitMQ, eventually

MakeServer = Callable[..., Server]
MakeNotification = Callable[[], Notification]
Cast = Callable[[], Notification]
CastWithin = Callable[[float], Cast]
MakeClient = Callable[..., EngineClient]


@pytest.fixture
def conf(conf: cfg.ConfigOpts, rabbit_url: str) -> cfg.ConfigOpts:
    conf.set_override("transport_url", rabbit_url)
    conf.set_override("host", "engine-host-1")
    return conf


@pytest.fixture
def bus(rabbit_url: str) -> Iterator[Bus]:
    opened = Bus(rabbit_url)
    yield opened
    opened.close()


@pytest.fixture
def wire(rabbitmq: RabbitMQ, conf: cfg.ConfigOpts) -> Iterator[Wire]:
    """Between broker and everything that is made from `conf`."""
    opened = Wire(rabbitmq.port)
    url = conf.transport_url.replace(str(rabbitmq.port), str(opened.port))
    conf.set_override("transport_url", url)
    yield opened
    opened.close()


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(request_id="req-1", user_id="u1", roles=("admin",))


@pytest.fixture
def make_notification() -> MakeNotification:
    def make() -> Notification:
        return Notification(
            id=1,
            notification_uuid=str(uuid.uuid4()),
            generated_time=datetime(2026, 11, 30, 17, 28, 52),
            source_host_uuid=str(uuid.uuid4()),
            type=NotificationType.COMPUTE_HOST,
            payload={"event": "STOPPED"},
            status=NotificationStatus.NEW,
            created_at=datetime(2026, 11, 30, 17, 28, 52),
        )

    return make


@pytest.fixture
def cast_within(
    conf: cfg.ConfigOpts, context: RequestContext, make_notification: MakeNotification
) -> Iterator[CastWithin]:
    """Gives a `cast` whose client waits so many seconds for the broker."""
    made: list[EngineClient] = []

    def make(timeout: float) -> Cast:
        client = EngineClient(Broker(conf), timeout=timeout)
        made.append(client)

        def send() -> Notification:
            notification = make_notification()
            client.process_notification(context, notification)
            return notification

        return send

    yield make
    for client in made:
        client.close()


@pytest.fixture
def cast(cast_within: CastWithin) -> Cast:
    """Sends a new notification; gives it."""
    return cast_within(10)


@pytest.fixture
def make_client(conf: cfg.ConfigOpts) -> Iterator[MakeClient]:
    """Gives a client that waits so many seconds for an answer."""
    made: list[EngineClient] = []

    def make(response_timeout: float = 20) -> EngineClient:
        made.append(EngineClient(Broker(conf), timeout=10, response_timeout=response_timeout))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def pending(rabbitmq: RabbitMQ, rabbit_url: str) -> Callable[[], int]:
    """Tells how many requests the broker still has, delivered or not."""
    virtual_host = rabbit_url.rsplit("/", 1)[1]

    def count() -> int:
        listed = rabbitmq.control(
            "list_queues", "-p", virtual_host, "name", "messages", "--formatter", "json"
        )
        return next(each["messages"] for each in json.loads(listed) if each["name"] == "ha_engine")

    return count


@pytest.fixture
def make_server(conf: cfg.ConfigOpts, bus: Bus) -> Iterator[MakeServer]:
    """Starts a server and waits until it consumes."""
    made: list[Server] = []

    def make(
        handler: Handler,
        *,
        threads: int = 4,
        consuming: bool = True,
        details: Details | None = None,
    ) -> Server:
        server = Server(
            Broker(conf),
            handler,
            threads=threads,
            clock=SystemClock(),
            details=details,
            ping=conf.rpc_ping_enabled,
        )
        made.append(server)
        before = max(0, bus.consumers("ha_engine"))
        server.start()
        if consuming:
            eventually(lambda: bus.consumers("ha_engine") == before + 1)
        return server

    yield make
    for server in made:
        server.close()
