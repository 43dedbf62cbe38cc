"""Protects versioned notifications on the real broker, also while it is away."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from masakari_ng.domain import RequestContext
from masakari_ng.messaging.events import Events
from tests.integration.messaging.bus import Bus, Recorder
from tests.integration.messaging.conftest import MakeClient, MakeNotification, MakeServer
from tests.servers import RabbitMQ, eventually

_GROUP = "oslo_messaging_notifications"
_INFO = "versioned_notifications.info"


@pytest.fixture
def make_events(conf: cfg.ConfigOpts) -> Iterator[Any]:
    made: list[Events] = []

    def make(*drivers: str) -> Events:
        conf.set_override("driver", list(drivers), _GROUP)
        made.append(Events.from_conf(conf))
        return made[-1]

    yield make
    for events in made:
        events.close()


def test_events_of_both_formats_arrive_where_consumers_look_for_them(
    bus: Bus, make_events: Any, context: RequestContext, make_notification: MakeNotification
):
    events, notification = make_events("messagingv2", "messaging"), make_notification()

    events.emit(context, "notification.process.start", notification)
    events.emit(context, "notification.process.error", notification, "no")

    eventually(lambda: bus.ready(_INFO) == 2)
    packed, bare = (bus.take(_INFO) for _ in range(2))
    assert packed.properties == {
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "application_headers": {},
        "delivery_mode": 2,
        "priority": 0,
    }
    assert packed.delivery_info["routing_key"] == _INFO
    inner, outer = json.loads(json.loads(packed.body)["oslo.message"]), json.loads(bare.body)
    assert inner.pop("_unique_id") != outer.pop("_unique_id")
    assert inner | {"_context_timestamp": ""} == outer | {"_context_timestamp": ""}
    assert inner["event_type"] == "notification.process.start"
    eventually(lambda: bus.ready("versioned_notifications.error") == 2)


def test_another_broker_may_take_the_events(
    conf: cfg.ConfigOpts, rabbitmq: RabbitMQ, make_events: Any, context: RequestContext
):
    other = rabbitmq.url(rabbitmq.new_vhost())
    conf.set_override("transport_url", other, _GROUP)

    make_events("messagingv2").emit(context, "segment.create.start", {"name": "s"})

    bus = Bus(other)
    eventually(lambda: bus.ready(_INFO) == 1)
    bus.close()


def test_a_queue_of_another_kind_costs_its_event_and_no_more(
    conf: cfg.ConfigOpts,
    bus: Bus,
    make_events: Any,
    context: RequestContext,
    caplog: pytest.LogCaptureFixture,
):
    make_events("messagingv2").emit(context, "segment.create.start", {"name": "s"})
    eventually(lambda: bus.ready(_INFO) == 1)
    conf.set_override("rabbit_quorum_queue", True, "oslo_messaging_rabbit")

    events = make_events("messagingv2")
    events.emit(context, "segment.create.start", {"name": "lost"})
    events.emit(context, "segment.create.error", {"name": "s"}, "no")

    eventually(lambda: "Could not send notification to versioned_notifications." in caplog.text)
    eventually(lambda: bus.ready("versioned_notifications.error") == 1)
    assert bus.ready(_INFO) == 1


def test_events_and_calls_outlive_a_restart_of_the_broker(
    *,
    rabbitmq: RabbitMQ,
    bus: Bus,
    make_server: MakeServer,
    make_client: MakeClient,
    make_events: Any,
    make_notification: MakeNotification,
    context: RequestContext,
):
    make_server(Recorder(), details=lambda _notification: [])
    client, events = make_client(40), make_events("messagingv2")
    assert client.recovery_workflow_details(context, make_notification()) == []
    events.emit(context, "segment.create.start", {"name": "s"})
    eventually(lambda: bus.ready(_INFO) == 1)

    rabbitmq.kill()
    begin = time.monotonic()
    events.emit(context, "segment.create.start", {"name": "t"})
    assert time.monotonic() - begin < 1
    rabbitmq.start()

    eventually(lambda: bus.consumers("ha_engine") == 1, timeout=40)
    assert client.recovery_workflow_details(context, make_notification()) == []
    eventually(lambda: bus.ready(_INFO) == 1, timeout=40)  # the queue of before is gone
