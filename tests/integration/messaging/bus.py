"""What the tests of messaging look at and through: a raw client, a breakable wire, a handler."""

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import kombu

from masakari_ng import errors
from masakari_ng.domain import Notification, RequestContext
from tests.servers import eventually


class Bus:
    """A peer on the virtual host that knows nothing of our code."""

    def __init__(self, url: str) -> None:
        self._link = kombu.Connection(url.replace("rabbit:", "amqp:"), connect_timeout=5)

    def close(self) -> None:
        self._link.release()

    def publish(
        self, body: bytes | str, *, key: str = "ha_engine", exchange: str = "masakari", **how: Any
    ) -> None:
        """Send a body as it is, with the usual properties unless told otherwise."""
        with self._link.channel() as channel:
            properties = {"content_type": "application/json", "content_encoding": "utf-8"} | how
            message = channel.prepare_message(body, **properties)
            channel.basic_publish(message, exchange=exchange, routing_key=key)

    def take(self, queue: str) -> Any:
        """Wait for the next message and take it."""
        eventually(lambda: self.ready(queue) > 0)
        return self.get(queue)

    def get(self, queue: str) -> Any:
        """Take the next message; None if there is none."""
        with self._link.channel() as channel:
            return channel.basic_get(queue, no_ack=True)

    def declare(self, *entities: kombu.Exchange | kombu.Queue) -> None:
        with self._link.channel() as channel:
            for entity in entities:
                entity.declare(channel=channel)

    def delete(self, queue: str) -> None:
        with self._link.channel() as channel:
            channel.queue_delete(queue)

    def ready(self, queue: str) -> int:
        """Messages that wait for a consumer; -1 if there is no such queue."""
        return self._count(queue).message_count

    def consumers(self, queue: str) -> int:
        """Consumers; -1 if there is no such queue, or no broker."""
        return self._count(queue).consumer_count

    def _count(self, queue: str) -> Any:
        declared = kombu.Queue(queue, no_declare=True)
        try:
            with self._link.channel() as channel:
                return declared(channel).queue_declare(passive=True)
        except (*self._link.channel_errors, *self._link.connection_errors):
            self._link.collect()
            return _Nothing


class _Nothing:
    message_count = consumer_count = -1


class Wire:
    """A TCP proxy in front of the broker that can be cut and frozen.

    Attributes:
        port: where it listens.
        heard: bytes that came from clients.
        accepted: connections that clients have made.
    """

    def __init__(self, broker_port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self._broker_port = broker_port
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._frozen: set[socket.socket] = set()
        self._swallowing = False
        self._cutting = threading.Event()
        self._closing = threading.Event()
        self.port: int = self._listener.getsockname()[1]
        self.heard = b""
        self.accepted = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """End all connections, as when a process is killed."""
        self._cutting.set()
        eventually(lambda: not self._cutting.is_set())

    def freeze(self) -> None:
        """Let nothing through any more on the present connections."""
        self._frozen |= {end for pair in self._pairs for end in pair}

    def swallow(self) -> None:
        """Accept connections, and that is all."""
        self._swallowing = True

    def close(self) -> None:
        self._closing.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._closing.is_set():
            if self._cutting.is_set():
                self._end_all()
                self._cutting.clear()
            ends = [end for pair in self._pairs for end in pair if end not in self._frozen]
            readable, _, _ = select.select([self._listener, *ends], [], [], 0.02)
            for source in readable:
                if source is self._listener:
                    self._accept()
                else:
                    self._forward(source)
        self._end_all()
        self._listener.close()

    def _end_all(self) -> None:
        for pair in list(self._pairs):
            self._end(pair)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            broker = socket.create_connection(("127.0.0.1", self._broker_port), 5)
        except OSError:
            client.close()
        else:
            self._pairs.append((client, broker))
            self.accepted += 1
            if self._swallowing:
                self.freeze()

    def _forward(self, source: socket.socket) -> None:
        pair = next((pair for pair in self._pairs if source in pair), None)
        if pair is None:
            return
        try:
            data = source.recv(65536)
            pair[1 if source is pair[0] else 0].sendall(data)
        except OSError:
            data = b""
        if source is pair[0]:
            self.heard += data
        if not data:
            self._end(pair)

    def _end(self, pair: tuple[socket.socket, socket.socket]) -> None:
        if pair in self._pairs:
            self._pairs.remove(pair)
        for end in pair:
            self._frozen.discard(end)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Recorder:
    """A handler that keeps what it gets, waits if told so, and fails if told so.

    Attributes:
        calls: contexts and notifications in the order of their arrival.
        acknowledge: what the last call got for it.
    """

    def __init__(
        self, *, go_on: threading.Event | None = None, failure: Exception | None = None
    ) -> None:
        self._go_on = go_on
        self._failure = failure
        self.calls: list[tuple[RequestContext, Notification]] = []
        self.acknowledge: Callable[[], None] = _not_called

    def process_notification(
        self, context: RequestContext, notification: Notification, acknowledge: Callable[[], None]
    ) -> None:
        self.acknowledge = acknowledge
        self.calls.append((context, notification))
        if self._go_on is not None and not self._go_on.wait(30):
            raise errors.WaitTimeout("Nobody let the handler go on")
        if self._failure is not None:
            raise self._failure


def _not_called() -> None:
    raise AssertionError("There was no call")
