"""Protects exchanges, queues, bindings and consumers: peers that declare otherwise are refused."""

import json
import re
from pathlib import Path
from typing import Any

import kombu
import pytest
from oslo_config import cfg

from tests.integration.messaging.bus import Bus, Recorder
from tests.integration.messaging.conftest import Cast, MakeServer
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


def _of_engine(entry: dict[str, Any]) -> bool:
    """Queues for replies and versioned notifications are not declared by the server."""
    names = (entry.get("name"), entry.get("queue"), entry.get("destination"))
    return not any(str(name).startswith(("reply_", "versioned_")) for name in names)


def _sorted(entries: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


@pytest.mark.parametrize("name", sorted(path.name for path in _DATA.glob("topology-*.json")))
def test_an_engine_declares_what_upstream_declares(
    conf: cfg.ConfigOpts, rabbitmq: RabbitMQ, rabbit_url: str, make_server: MakeServer, name: str
):
    golden = json.loads((_DATA / name).read_text())
    for option, value in golden["options"].items():
        conf.set_override(option, json.loads(value), _GROUP)

    make_server(Recorder())

    virtual_host = rabbit_url.rsplit("/", 1)[1]
    for what in _COLUMNS:
        expected = [entry for entry in golden[what] if _of_engine(entry)]
        assert _sorted(_listed(rabbitmq, virtual_host, what)) == _sorted(expected), what


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
