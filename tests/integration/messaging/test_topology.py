"""Protects exchanges, queues, bindings and consumers: peers that declare otherwise are refused."""

import json
import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import kombu
import pytest
from oslo_config import cfg

from masakari_ng.domain import Notification, RequestContext
from masakari_ng.messaging.events import Events
from tests.integration.messaging.bus import Bus, Recorder
from tests.integration.messaging.conftest import Cast, MakeClient, MakeNotification, MakeServer
from tests.servers import RabbitMQ, eventually

_DATA = Path(__file__).parent / "data"
_GROUP = "oslo_messaging_rabbit"
_DIGITS = re.compile(r"[0-9a-f]{32}$")
_COLUMNS = {
    "exchanges": ["name", "type", "durable", "auto_delete", "arguments"],
    "queues": ["name", "type", "durable", "auto_delete", "exclusive", "arguments"],
    "bindings": ["source_name", "destination_name", "routing_key"],
    "consumers": ["queue_name", "consumer_tag", "ack_required", "prefetch_count", "arguments"],
}
_RENAMED = {"source_name": "source", "destination_name": "destination", "queue_name": "queue"}


def _listed(rabbitmq: RabbitMQ, virtual_host: str, what: str) -> list[dict[str, Any]]:
    """What the broker has, in the form of the golden data."""
    text = rabbitmq.control(
        f"list_{what}", "-p", virtual_host, *_COLUMNS[what], "--formatter", "json"
    )
    found = []
    for row in json.loads(text):
        entry = {_RENAMED.get(name, name): _neutral(row[name]) for name in _COLUMNS[what]}
        if "exclusive" in entry:
            entry["exclusive"] = entry["exclusive"] or False  # empty for a quorum queue
        if entry.get("source", entry.get("name")) != "" and not _builtin(entry):
            found.append(entry)
    return found


def _neutral(value: Any) -> Any:
    if isinstance(value, str):
        return _DIGITS.sub("<32 hex digits>", value)
    if isinstance(value, list):  # a table of no or of some entries
        return {entry[0]: entry[2] for entry in value}
    return value


def _builtin(entry: dict[str, Any]) -> bool:
    return str(entry.get("name", "")).startswith("amq.")


def _sorted(entries: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


@pytest.fixture
def golden(conf: cfg.ConfigOpts, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What upstream declares with some options, which are set, on a machine of its own."""
    machine = f"m{uuid.uuid4().hex[:8]}"
    text = (_DATA / request.param).read_text()
    recorded: dict[str, Any] = json.loads(text.replace("ctl1", machine).replace("ctl2", machine))
    for option, value in recorded["options"].items():
        typed = value in {"true", "false"} or value.isdigit()
        conf.set_override(option, json.loads(value) if typed else value, _GROUP)
    yield recorded
    for counter in Path("/dev/shm").glob(f"{machine}_*"):
        counter.unlink()


@pytest.mark.parametrize(
    "golden", sorted(path.name for path in _DATA.glob("topology-*.json")), indirect=True
)
def test_engine_and_api_declare_what_upstream_declares(
    *,
    conf: cfg.ConfigOpts,
    rabbitmq: RabbitMQ,
    rabbit_url: str,
    make_server: MakeServer,
    make_client: MakeClient,
    make_notification: MakeNotification,
    context: RequestContext,
    golden: dict[str, Any],
):
    conf.set_override("processname", "masakari-engine", _GROUP)
    make_server(Recorder(), details=lambda _notification: [])
    conf.set_override("processname", "masakari-api", _GROUP)

    assert make_client().recovery_workflow_details(context, make_notification()) == []
    _tell(conf, context, make_notification(), {queue["name"] for queue in golden["queues"]})

    virtual_host = rabbit_url.rsplit("/", 1)[1]
    with ThreadPoolExecutor() as pool:  # the broker's tool takes its time
        found = pool.map(partial(_listed, rabbitmq, virtual_host), _COLUMNS)
    for what, entries in zip(_COLUMNS, found, strict=True):
        assert _sorted(entries) == _sorted(golden[what]), what


def _tell(
    conf: cfg.ConfigOpts, context: RequestContext, notification: Notification, queues: set[str]
) -> None:
    """Send an event to each of these queues that is for events."""
    conf.set_override("driver", ["messagingv2"], "oslo_messaging_notifications")
    events = Events.from_conf(conf)
    for phase, queue in (("start", "info"), ("error", "error")):
        if f"versioned_notifications.{queue}" in queues:
            events.emit(context, f"notification.create.{phase}", notification)
    events.close()


def test_what_exists_as_not_durable_is_taken_as_it_is(
    conf: cfg.ConfigOpts, bus: Bus, make_server: MakeServer, cast: Cast
):
    exchange = kombu.Exchange("masakari", "topic", durable=False)
    bus.declare(kombu.Queue("ha_engine", exchange, routing_key="ha_engine", durable=False))
    conf.set_override("amqp_durable_queues", True, _GROUP)
    handler = Recorder()

    make_server(handler)
    cast()

    eventually(lambda: len(handler.calls) == 1)


def test_what_exists_as_durable_is_an_error_until_it_is_gone(
    bus: Bus, make_server: MakeServer, cast: Cast, caplog: pytest.LogCaptureFixture
):
    exchange = kombu.Exchange("other", "topic", durable=True)
    bus.declare(kombu.Queue("ha_engine", exchange, routing_key="ha_engine", durable=True))
    handler = Recorder()
    make_server(handler, consuming=False)
    eventually(lambda: "inequivalent arg 'durable'" in caplog.text)

    bus.delete("ha_engine")

    cast()
    eventually(lambda: len(handler.calls) == 1)


def test_what_was_taken_as_not_durable_is_declared_anew_once_it_is_gone(
    conf: cfg.ConfigOpts, bus: Bus, make_server: MakeServer, caplog: pytest.LogCaptureFixture
):
    exchange = kombu.Exchange("other", "topic", durable=False)
    bus.declare(kombu.Queue("ha_engine", exchange, routing_key="ha_engine", durable=False))
    conf.set_override("rabbit_quorum_queue", True, _GROUP)
    make_server(Recorder(), consuming=False)
    eventually(lambda: "Connection failed" in caplog.text)

    bus.delete("ha_engine")

    eventually(lambda: bus.consumers("ha_engine") == 1)
