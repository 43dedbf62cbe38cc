"""Reads queues in a thread of its own and comes back after every loss of connection.

Spec: rpc §2.2, §8, §9
"""

import contextlib
import copy
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kombu.entity import Queue
from kombu.message import Message

from masakari_ng import errors, metrics
from masakari_ng.messaging.connection import Broker, release
from masakari_ng.messaging.topology import declare

log = logging.getLogger(__name__)

_ANSWER_TIMEOUT = 5.0
_CLOSE_TIMEOUT = 3.0
_TICK = 0.1
_OFFSET = "x-stream-offset"

Verdict = Callable[[Message], None]
"""What to tell the broker about a message: `Message.ack` or one of its siblings."""


class Consumer:
    """Gives messages to `receive`, one at a time.

    Only its thread touches the channel: the others leave their verdicts in a queue, which it
    empties ten times a second.

    Args:
        broker: whence.
        queues: what is read; declared anew on every connection.
        receive: called in the consuming thread; must be quick.
        name: of the thread.
        sleep: waits between attempts to connect, for so many seconds; may raise `Stopped`.

    Attributes:
        ready: set while it consumes.
    """

    def __init__(
        self,
        broker: Broker,
        queues: Sequence[Queue],
        receive: Callable[[Message], None],
        *,
        name: str,
        sleep: Callable[[float], object],
    ) -> None:
        self._broker = broker
        self._queues = queues
        self._receive = receive
        self._sleep = sleep
        self._offset: int | None = None
        self._verdicts: deque[tuple[Message, Verdict, Callable[[], None]]] = deque()
        self._stopping = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self.ready = threading.Event()

    @property
    def alive(self) -> bool:
        """False before its start, after its end, and in a forked child."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to consume as soon as there is a broker."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; what was read can still be settled."""
        self._stopping.set()

    def close(self) -> None:
        """End the connection; takes a few seconds at most."""
        self._stopping.set()
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(_CLOSE_TIMEOUT)

    def settle(
        self, message: Message, verdict: Verdict, then: Callable[[], None] = lambda: None
    ) -> None:
        """Have the broker told what becomes of a message, from any thread.

        After that comes `then`; not at all if the message will come again.
        """
        self._verdicts.append((message, verdict, then))

    def _serve(self) -> None:
        pauses = self._broker.pauses(after_loss=False)
        while not self._stopping.is_set():
            link = None
            try:
                link = self._broker.connect(timeout=_ANSWER_TIMEOUT)
                channel = self._consume(link)
                pauses = self._broker.pauses(after_loss=True)
                self.ready.set()
                metrics.CONNECTED.set(1, self._thread.name)
                self._drain(link, channel)
                release(link)
            except Exception as error:  # noqa: BLE001 - no trouble with a connection ends the engine
                self.ready.clear()
                metrics.CONNECTED.set(0, self._thread.name)
                if link is not None:
                    link.collect()
                pause = next(pauses)
                log.warning("Connection failed: %s (retrying in %.1f seconds)", error, pause)
                self._wait(pause)

    def _wait(self, seconds: float) -> None:
        try:
            while seconds > 0 and not self._stopping.is_set():
                self._sleep(min(_TICK, seconds))
                seconds -= _TICK
        except errors.Stopped:
            self._stopping.set()

    def _consume(self, link: Any) -> Any:
        # Declaring marks them, and the broker may be another.
        queues = copy.deepcopy(tuple(self._queues))
        channel = declare(link, queues)
        if self._broker.topology.prefetch:
            channel.basic_qos(0, self._broker.topology.prefetch, False)
        receive = partial(self._take, channel)
        # Not with kombu's Consumer, whose tags go on counting over all connections.
        for tag, queue in enumerate(queues, start=1):
            arguments: dict[str, Any] = vars(queue)["consumer_arguments"]
            if self._offset is not None and _OFFSET in arguments:
                arguments[_OFFSET] = self._offset
            queue.bind(channel).consume(consumer_tag=str(tag), callback=receive, no_ack=False)
        log.info("Waiting for messages in %s", ", ".join(queue.name for queue in queues))
        return channel

    def _drain(self, link: Any, channel: Any) -> None:
        """Receive and settle until closed."""
        # Not through kombu's connection, which would silently make a new one without consumers.
        transport, connection = link.transport, link.connection
        tags = [str(tag) for tag, _ in enumerate(self._queues, start=1)]
        while not self._closing.is_set():
            while tags and self._stopping.is_set():
                channel.basic_cancel(tags.pop())
            self._settle(channel)
            transport.heartbeat_check(connection, rate=self._broker.heartbeat_rate)
            with contextlib.suppress(TimeoutError):
                transport.drain_events(connection, timeout=_TICK)
        self._settle(channel)

    def _settle(self, channel: Any) -> None:
        """Carry the verdicts out; the messages of a lost channel come again."""
        while self._verdicts:
            message, verdict, then = self._verdicts.popleft()
            if message.channel is channel and not message.acknowledged:
                verdict(message)
                then()

    def _take(self, channel: Any, raw: Any) -> None:
        """Called by kombu, in the consuming thread."""
        message = channel.message_to_python(raw)
        if _OFFSET in message.headers:
            self._offset = message.headers[_OFFSET] + 1
        try:
            self._receive(message)
        except errors.BadMessage as error:
            log.warning("Failed to process message, skipping it: %s", error)
            self.settle(message, Message.reject)
        except Exception:
            log.exception("Failed to process message, skipping it")
            self.settle(message, Message.reject)
