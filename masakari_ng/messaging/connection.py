"""Connections to the broker, and the only place of exchanges, queues and bindings.

Spec: rpc §2, §3
"""

import contextlib
import itertools
import os
import random
import ssl
import sys
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError
from oslo_config import cfg
from oslo_utils import strutils

from masakari_ng import errors
from masakari_ng.messaging import transport_url

_GROUP = "oslo_messaging_rabbit"
_LOGIN_METHODS = ("AMQPLAIN", "PLAIN", "EXTERNAL")  # all that py-amqp knows
_FAREWELL = 1.0


class Broker:
    """How to reach RabbitMQ and what has to exist there.

    Args:
        conf: options of `conf.messaging`; read here and not later.

    Raises:
        ConfigurationError: `transport_url` or `rabbit_login_method` cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        url = transport_url.parse(conf.transport_url)
        self.topic: str = conf.masakari_topic
        self.in_memory = url.transport == "memory"
        self._exchange_name: str = conf.control_exchange
        self._host: str = conf.host
        self._program: str = conf.prog or os.path.basename(sys.argv[0])
        self._url = url
        self._addresses = random.sample(url.addresses, len(url.addresses))
        self._current = 0
        self._options = _options(conf, url)
        if self._options["rabbit_login_method"] not in _LOGIN_METHODS:
            raise errors.ConfigurationError(
                f"rabbit_login_method must be one of {', '.join(_LOGIN_METHODS)}"
            )

    @property
    def heartbeat_rate(self) -> int:
        """Heartbeats to be sent in the time after which the broker would miss them."""
        return max(1, int(self._options["heartbeat_rate"]))

    @property
    def heartbeat_interval(self) -> float | None:
        """Seconds between two looks at an idle connection; None: no heartbeat."""
        return self._options["heartbeat_timeout_threshold"] / self.heartbeat_rate / 2 or None

    def pauses(self, *, after_loss: bool) -> Iterator[float]:
        """Seconds to wait before each attempt to connect again. Spec: rpc §9.

        Args:
            after_loss: a connection that worked is gone, so the first attempt may come soon.
        """
        first, step = self._options["rabbit_retry_interval"], self._options["rabbit_retry_backoff"]
        if after_loss:
            yield self._options["kombu_reconnect_delay"]
        for pause in itertools.count(first, step):
            yield min(pause, self._options["rabbit_interval_max"])

    def connect(self, *, timeout: float, confirm: bool = False) -> Any:
        """A kombu connection to the first broker that answers.

        The one that answered last comes first. Every later operation on the connection that gets no
        answer within `timeout` raises `TimeoutError`.

        Args:
            timeout: seconds for all brokers together.
            confirm: publishing waits until the broker has taken the message.

        Raises:
            BrokerUnavailable: none can be used.
        """
        failures = []
        for _ in self._addresses:
            address = self._addresses[self._current % len(self._addresses)]
            link = self._link(address, timeout / len(self._addresses), confirm=confirm)
            try:
                link.ensure_connection(max_retries=0)
            except (OperationalError, *link.connection_errors, *link.channel_errors) as error:
                self._current += 1
                failures.append(f"{address}: {error}")
                continue
            _limit(link, timeout)
            return link
        raise errors.BrokerUnavailable("; ".join(failures))

    @contextlib.contextmanager
    def connected(self, *, timeout: float) -> Iterator[Any]:
        """`connect` as a block; what is raised in it cuts the connection without a farewell."""
        link = self.connect(timeout=timeout)
        try:
            yield link
        except BaseException:
            link.collect()
            raise
        release(link)

    def _link(self, address: transport_url.Address, timeout: float, *, confirm: bool) -> Connection:
        name = f"{self._program}:{os.getpid()}:{uuid.uuid4()}"
        options = {"client_properties": {"connection_name": name}, "confirm_publish": confirm}
        return Connection(
            hostname=f"[{address.host}]" if ":" in address.host else address.host,
            port=address.port,
            userid=address.user,
            password=address.password,
            virtual_host=self._url.virtual_host,
            transport=self._url.transport,
            ssl=self._tls(address.host),
            login_method=self._options["rabbit_login_method"],
            heartbeat=self._options["heartbeat_timeout_threshold"],
            connect_timeout=timeout,
            transport_options=options,
        )

    def _tls(self, host: str) -> dict[str, Any] | bool:
        if not self._options["ssl"]:
            return False
        name = {"server_hostname": host}
        return {
            "ca_certs": self._options["ssl_ca_file"] or None,
            "certfile": self._options["ssl_cert_file"] or None,
            "keyfile": self._options["ssl_key_file"] or None,
            "cert_reqs": ssl.CERT_REQUIRED,
            **(name if self._options["ssl_enforce_hostname_verification"] else {}),
        }

    def request_queue(self) -> Queue:
        """The queue that all engines share."""
        return self._topic_queue(self.topic)

    def engine_queues(self) -> tuple[Queue, ...]:
        """All queues of one engine in the order of their consumers. Spec: rpc §3.1."""
        fanout = Exchange(f"{self.topic}_fanout", "fanout", durable=False, auto_delete=True)
        return (
            self.request_queue(),
            self._topic_queue(f"{self.topic}.{self._host}"),
            Queue(
                f"{self.topic}_fanout_{uuid.uuid4().hex}",
                fanout,
                routing_key=self.topic,
                durable=False,
                auto_delete=False,
                expires=self._options["rabbit_transient_queues_ttl"] or None,
            ),
        )

    def _topic_queue(self, name: str) -> Queue:
        """A queue and the topic exchange of all messages, which is alike in every way."""
        quorum = self._options["rabbit_quorum_queue"]
        kind = {
            "durable": quorum or self._options["amqp_durable_queues"],
            "auto_delete": self._options["amqp_auto_delete"],
        }
        exchange = Exchange(self._exchange_name, "topic", **kind)
        arguments = {"x-queue-type": "quorum"} if quorum else {}
        return Queue(name, exchange, routing_key=name, queue_arguments=arguments, **kind)


def declare(link: Any, entities: Sequence[Exchange | Queue]) -> Any:
    """Declare exchanges and queues, in this order, and give the channel.

    What exists as not durable is taken as it is, and its entity remembers that. Spec: rpc §3.4.
    """
    channel = link.channel()
    for entity in entities:
        try:
            entity.declare(channel=channel)
        except link.channel_errors as error:
            if not entity.durable or "inequivalent arg 'durable'" not in str(error):
                raise
            entity.durable = False  # the broker has closed the channel
            channel = link.channel()
            entity.declare(channel=channel)
    return channel


def release(link: Any) -> None:
    """Close a connection in an orderly way, as long as the broker does not take long."""
    _limit(link, _FAREWELL)
    link.release()


def _limit(link: Any, timeout: float) -> None:
    """Let every operation that gets no answer fail after `timeout` seconds."""
    # A lost one is not asked for its socket: kombu would connect anew.
    sock = getattr(link.connection, "sock", None) if link.connected else None
    if sock is not None:
        sock.settimeout(timeout)


def _options(conf: cfg.ConfigOpts, url: transport_url.TransportURL) -> dict[str, Any]:
    """The options of the group, those of the URL first."""
    options = dict(conf[_GROUP].items())
    for name, text in url.options.items():
        if name not in options:
            raise errors.ConfigurationError(f"transport_url: there is no option {name}")
        options[name] = _converted(name, text, type(options[name]))
    return options


def _converted(name: str, text: str, kind: type) -> Any:
    try:
        return strutils.bool_from_string(text, strict=True) if kind is bool else kind(text)
    except ValueError as error:
        raise errors.ConfigurationError(f"transport_url: {name} cannot be {text}") from error
