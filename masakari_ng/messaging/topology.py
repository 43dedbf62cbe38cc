"""The only place of exchanges, queues and bindings. Spec: rpc §3."""

import fcntl
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kombu.entity import Exchange, Queue
from oslo_config import cfg

from masakari_ng import errors

_COUNTERS = Path("/dev/shm")  # noqa: S108 - where upstream keeps them
_STARTED = 19  # place of the start time in /proc/PID/stat behind the program's name
_EVENTS = "versioned_notifications"
_LIMITS = {
    "rabbit_quorum_delivery_limit": "x-delivery-limit",
    "rabbit_quorum_max_memory_length": "x-max-in-memory-length",
    "rabbit_quorum_max_memory_bytes": "x-max-in-memory-bytes",
}
_CONFLICTS = (
    # What is set, what it cannot go with, and whether that has to be set instead.
    ("rabbit_quorum_queue", "rabbit_ha_queues", False),
    ("rabbit_stream_fanout", "rabbit_qos_prefetch_count", True),
    ("rabbit_stream_fanout", "rabbit_transient_quorum_queue", True),
)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Where messages of one kind go.

    Attributes:
        queue: with its exchange and routing key.
        declared: what is declared before the first message of a connection. If it is empty, the
            queue is a peer's and must be there.
    """

    queue: Queue
    declared: tuple[Exchange | Queue, ...]


class Topology:
    """What the options make of the declarations; a new entity at every call.

    Args:
        conf: options of `conf.messaging`.
        rabbit: those of `[oslo_messaging_rabbit]`, with what the URL says.
        in_memory: the broker is kombu's, within the process.

    Raises:
        ConfigurationError: two options contradict each other.
    """

    def __init__(self, conf: cfg.ConfigOpts, rabbit: Mapping[str, Any], *, in_memory: bool) -> None:
        for option, other, needed in _CONFLICTS:
            if rabbit[option] and bool(rabbit[other]) is not needed:
                raise errors.ConfigurationError(
                    f"{option} {'needs' if needed else 'cannot be used with'} {other}"
                )
        self._exchange: str = conf.control_exchange
        self._topic: str = conf.masakari_topic
        self._host: str = conf.host
        self._rabbit = rabbit
        self._in_memory = in_memory

    @property
    def prefetch(self) -> int:
        """Messages that a consumer may hold unacknowledged; 0: any number."""
        return int(self._rabbit["rabbit_qos_prefetch_count"])

    def engine_queues(self) -> tuple[Queue, ...]:
        """All queues of one engine in the order of their consumers."""
        own = f"{self._topic}.{self._host}"
        return (self._topic_queue(self._topic), self._topic_queue(own), self._fanout_queue())

    def reply_queue(self) -> Queue:
        """A queue for the answers to one process, with a name that no other process has."""
        name = f"reply_{unique_name(self._rabbit)}"
        return Queue(name, routing_key=name, **self._kind(transient=True))

    def request_box(self) -> Mailbox:
        """The queue that all engines share, which they declare."""
        queue = self._topic_queue(self._topic)
        # Nothing is returned in memory, so the queue has to exist there.
        return Mailbox(queue, (queue,) if self._in_memory else (queue.exchange,))

    def event_box(self, priority: str) -> Mailbox:
        """The queue of the events of one priority, `info` or `error`."""
        queue = self._topic_queue(f"{_EVENTS}.{priority}")
        return Mailbox(queue, (queue,))

    def reply_box(self, name: str) -> Mailbox:
        """The queue in which a peer waits for answers."""
        return Mailbox(Queue(name, routing_key=name), ())

    def _topic_queue(self, name: str) -> Queue:
        """A queue and the topic exchange of all messages, which is alike in every way."""
        kind = self._kind(transient=False)
        exchange = Exchange(
            self._exchange, "topic", durable=kind["durable"], auto_delete=kind["auto_delete"]
        )
        return Queue(name, exchange, routing_key=name, **kind)

    def _fanout_queue(self) -> Queue:
        name, kind = f"{self._topic}_fanout", self._kind(transient=True)
        exchange = Exchange(name, "fanout", durable=kind["durable"], auto_delete=True)
        if self._rabbit["rabbit_stream_fanout"]:
            age = f"{self._rabbit['rabbit_transient_queues_ttl']}s"
            kind |= {
                "expires": None,
                "queue_arguments": {"x-queue-type": "stream", "x-max-age": age},
                "consumer_arguments": kind["consumer_arguments"] | {"x-stream-offset": "last"},
            }
        else:
            name = f"{name}_{unique_name(self._rabbit)}"
        return Queue(name, exchange, routing_key=self._topic, **kind)

    def _kind(self, *, transient: bool) -> dict[str, Any]:
        """Keywords of a queue for kombu. Spec: rpc §3.2."""
        rabbit = self._rabbit
        quorum = rabbit["rabbit_transient_quorum_queue" if transient else "rabbit_quorum_queue"]
        arguments: dict[str, Any] = {"x-ha-policy": "all"} if rabbit["rabbit_ha_queues"] else {}
        if quorum:
            limits = {name: rabbit[option] for option, name in _LIMITS.items() if rabbit[option]}
            arguments |= {"x-queue-type": "quorum"} | limits
        failover = {"x-cancel-on-ha-failover": True}
        return {
            "durable": quorum or (not transient and rabbit["amqp_durable_queues"]),
            "auto_delete": not transient and rabbit["amqp_auto_delete"],
            "expires": (transient and rabbit["rabbit_transient_queues_ttl"]) or None,
            "queue_arguments": arguments,
            "consumer_arguments": failover if rabbit["enable_cancel_on_failover"] else {},
        }


def declare(link: Any, entities: Sequence[Exchange | Queue]) -> Any:
    """Declare exchanges, and queues with theirs, in this order, and give the channel.

    What exists as not durable is taken as it is, and its entity remembers that. Spec: rpc §3.4.
    """
    channel = link.channel()
    for entity in entities:
        parts = (entity.exchange, entity) if isinstance(entity, Queue) else (entity,)
        for part in parts:
            try:
                part.declare(channel=channel)
            except link.channel_errors as error:
                if not part.durable or "inequivalent arg 'durable'" not in str(error):
                    raise
                part.durable = False  # the broker has closed the channel
                channel = link.channel()
                part.declare(channel=channel)
    return channel


def unique_name(options: Mapping[str, Any], folder: Path = _COUNTERS) -> str:
    """The part of a queue's name that no other process uses. Spec: rpc §3.3."""
    if not options["use_queue_manager"]:
        return uuid.uuid4().hex
    host, program = options["hostname"], options["processname"]
    return f"{host}:{program}:{_next(folder / f'{host}_{program}_qmanager')}"


def _next(counter: Path) -> int:
    """One more than the last of this service, and 1 once it was started anew."""
    group = os.getpgrp()
    with counter.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        present, last = (str(group), _started(group)), file.read().strip().split(":")
        known = len(last) == len(("group", "number", "start")) and (last[0], last[2]) == present
        number = int(last[1]) + 1 if known else 1
        file.seek(0)
        file.truncate()
        file.write(f"{present[0]}:{number}:{present[1]}\n")
    return number


def _started(process: int) -> str:
    """When a process was started; empty if its group outlives it."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return ""
    return text.rpartition(")")[2].split()[_STARTED]
