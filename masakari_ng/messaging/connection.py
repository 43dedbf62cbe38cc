"""Connections to the broker. Spec: rpc §2."""

import itertools
import os
import random
import ssl
import sys
import uuid
from collections.abc import Iterator
from typing import Any

from kombu.connection import Connection
from kombu.exceptions import OperationalError
from oslo_config import cfg
from oslo_utils import strutils

from masakari_ng import errors
from masakari_ng.messaging import transport_url
from masakari_ng.messaging.topology import Topology

_GROUP = "oslo_messaging_rabbit"
_LOGIN_METHODS = ("AMQPLAIN", "PLAIN", "EXTERNAL")  # all that py-amqp knows
_COMPRESSIONS = {"bz2": "bzip2"}  # kombu's name for it
_FAREWELL = 1.0


class Broker:
    """How to reach RabbitMQ and what has to exist there.

    Args:
        conf: options of `conf.messaging`; read here and not later.
        url: in place of `transport_url`, if it is given.

    Attributes:
        topology: exchanges and queues.
        compression: of the bodies that are sent, as kombu calls it; None: they are not compressed.

    Raises:
        ConfigurationError: an option cannot be used, or not together with another.
    """

    def __init__(self, conf: cfg.ConfigOpts, url: str | None = None) -> None:
        parsed = transport_url.parse(url or conf.transport_url)
        self._program: str = conf.prog or os.path.basename(sys.argv[0])
        self._url = parsed
        self._addresses = random.sample(parsed.addresses, len(parsed.addresses))
        self._current = 0
        self._options = _options(conf, parsed)
        in_memory = parsed.transport == "memory"
        self.topology = Topology(conf, self._options, in_memory=in_memory)
        compression = self._options["kombu_compression"]
        self.compression = _COMPRESSIONS.get(compression, compression)
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

    @property
    def reply_patience(self) -> int:
        """Seconds for which a queue is looked for that an answer is to go to."""
        return int(self._options["kombu_missing_consumer_retry_timeout"])

    def pauses(self, *, after_loss: bool) -> Iterator[float]:
        """Seconds to wait before each attempt to connect again. Spec: rpc §9.

        Args:
            after_loss: a connection that worked is gone, so the first attempt may come soon.
        """
        first, step = self._options["rabbit_retry_interval"], self._options["rabbit_retry_backoff"]
        if after_loss:
            splay = random.uniform(0.0, self._options["kombu_reconnect_splay"])  # noqa: S311
            yield self._options["kombu_reconnect_delay"] + splay
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
        shuffled = self._options["kombu_failover_strategy"] == "shuffle"
        steps = range(len(self._addresses)) if shuffled else (1,)
        for _ in self._addresses:
            address = self._addresses[self._current % len(self._addresses)]
            link = self._link(address, timeout / len(self._addresses), confirm=confirm)
            try:
                link.ensure_connection(max_retries=0)
            except (OperationalError, *link.connection_errors, *link.channel_errors) as error:
                self._current += random.choice(steps)  # noqa: S311
                failures.append(f"{address}: {error}")
                continue
            _limit(link, timeout)
            return link
        raise errors.BrokerUnavailable("; ".join(failures))

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
    if kind is type(None):
        return text
    try:
        return strutils.bool_from_string(text, strict=True) if kind is bool else kind(text)
    except ValueError as error:
        raise errors.ConfigurationError(f"transport_url: {name} cannot be {text}") from error
