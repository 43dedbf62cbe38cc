"""Protects how options become connections, waits and declarations."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.topology import unique_name
from tests.servers import free_port

_GROUP = "oslo_messaging_rabbit"


def _declarations(broker: Broker) -> list[tuple[Any, ...]]:
    """Name, durable, auto-delete and arguments, first of the exchange, then of all queues."""
    queues = broker.topology.engine_queues()
    exchange = queues[0].exchange
    return [
        (exchange.name, exchange.durable, exchange.auto_delete, None),
        *(
            (queue.name, queue.durable, queue.auto_delete, queue.queue_arguments)
            for queue in queues
        ),
    ]


@pytest.mark.parametrize(
    ("options", "durable", "auto_delete", "arguments"),
    [
        ({}, False, False, {}),
        ({"amqp_durable_queues": True}, True, False, {}),
        ({"amqp_auto_delete": True}, False, True, {}),
        ({"rabbit_quorum_queue": True}, True, False, {"x-queue-type": "quorum"}),
    ],
    ids=str,
)
def test_options_change_the_declarations(
    conf: cfg.ConfigOpts,
    options: dict[str, bool],
    durable: bool,
    auto_delete: bool,
    arguments: dict[str, str],
):
    conf.set_override("host", "engine-host-1")
    for name, value in options.items():
        conf.set_override(name, value, _GROUP)

    *topics, fanout = _declarations(Broker(conf))

    assert topics == [
        ("masakari", durable, auto_delete, None),
        ("ha_engine", durable, auto_delete, arguments),
        ("ha_engine.engine-host-1", durable, auto_delete, arguments),
    ]
    assert fanout[1:3] == (False, False)


@pytest.mark.parametrize(("ttl", "expires"), [(1800, 1800), (0, None)])
def test_the_fanout_queue_expires(conf: cfg.ConfigOpts, ttl: int, expires: int | None):
    conf.set_override("rabbit_transient_queues_ttl", ttl, _GROUP)

    broker = Broker(conf)
    first, second = (broker.topology.engine_queues()[2] for _ in range(2))

    assert first.expires == expires
    assert first.name.startswith("ha_engine_fanout_")
    assert len(first.name) == len("ha_engine_fanout_") + 32
    assert first.name != second.name


def test_names_follow_topic_and_exchange(conf: cfg.ConfigOpts):
    conf.set_override("host", "h")
    conf.set_override("control_exchange", "foo")
    conf.set_override("masakari_topic", "bar")

    shared, own, fanout = Broker(conf).topology.engine_queues()

    assert [shared.name, own.name] == ["bar", "bar.h"]
    assert [shared.routing_key, own.routing_key, fanout.routing_key] == ["bar", "bar.h", "bar"]
    assert [queue.exchange.name for queue in (shared, own, fanout)] == ["foo", "foo", "bar_fanout"]
    assert (fanout.exchange.type, fanout.exchange.durable, fanout.exchange.auto_delete) == (
        "fanout",
        False,
        True,
    )


@pytest.mark.parametrize(
    ("after_loss", "expected"),
    [(False, [1, 3, 5, 7, 9]), (True, [0.5, 1, 3, 5, 7])],
)
def test_waits_grow(conf: cfg.ConfigOpts, after_loss: bool, expected: list[float]):
    conf.set_override("kombu_reconnect_delay", 0.5, _GROUP)

    pauses = Broker(conf).pauses(after_loss=after_loss)

    assert list(itertools.islice(pauses, 5)) == expected
    assert list(itertools.islice(pauses, 20))[-1] == 30


@pytest.mark.parametrize(
    ("query", "interval"),
    [("", 10), ("?heartbeat_timeout_threshold=0", None), ("?heartbeat_rate=2", 15)],
)
def test_options_in_the_url_come_first(conf: cfg.ConfigOpts, query: str, interval: float | None):
    conf.set_override("transport_url", f"rabbit://host/{query}")

    assert Broker(conf).heartbeat_interval == interval


@pytest.mark.parametrize(
    "query",
    [
        "no_such_option=1",
        "ssl=perhaps",
        "heartbeat_rate=x",
        "rabbit_login_method=RABBIT-CR-DEMO",
        "rabbit_quorum_queue=1&rabbit_ha_queues=1",
        "rabbit_stream_fanout=1&rabbit_qos_prefetch_count=1",
        "rabbit_stream_fanout=1&rabbit_transient_quorum_queue=1",
    ],
)
def test_options_that_cannot_be_used_are_refused(conf: cfg.ConfigOpts, query: str):
    conf.set_override("transport_url", f"rabbit://u:secret@host/?{query}")

    with pytest.raises(errors.ConfigurationError) as refusal:
        Broker(conf)

    assert query.partition("=")[0] in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_all_brokers_are_tried_and_named(conf: cfg.ConfigOpts):
    ports = [free_port(), free_port()]
    hosts = ",".join(f"u:secret@127.0.0.1:{port}" for port in ports)
    conf.set_override("transport_url", f"rabbit://{hosts}/")

    with pytest.raises(errors.BrokerUnavailable) as refusal:
        Broker(conf).connect(timeout=2)

    assert all(f"127.0.0.1:{port}" in str(refusal.value) for port in ports)
    assert "secret" not in str(refusal.value)


def test_options_without_a_default_can_stand_in_the_url(conf: cfg.ConfigOpts):
    conf.set_override("transport_url", "rabbit://host/?kombu_compression=bz2")

    assert Broker(conf).compression == "bzip2"


def test_numbered_queues_are_taken_over_by_the_next_start(tmp_path: Path):
    options = {"use_queue_manager": True, "hostname": "ctl1", "processname": "masakari-api"}
    counter = tmp_path / "ctl1_masakari-api_qmanager"

    names = [unique_name(options, tmp_path) for _ in range(2)]
    group, number, _ = counter.read_text().strip().split(":")
    counter.write_text(f"{group}:{number}:another start\n")
    names.append(unique_name(options, tmp_path))

    assert names == [f"ctl1:masakari-api:{number}" for number in (1, 2, 1)]
