"""The engine's side: takes requests off the queues and runs them in threads. Spec: rpc §7 to §9."""

import contextlib
import copy
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from kombu.message import Message

from masakari_ng import errors
from masakari_ng.domain import Notification, RequestContext
from masakari_ng.messaging import envelope
from masakari_ng.messaging.connection import Broker, declare

log = logging.getLogger(__name__)

_VERSION = "1.1"
_ANSWER_TIMEOUT = 5.0
_CLOSE_TIMEOUT = 3.0
_TICK = 0.1

_Verdict = tuple[Message, Callable[[Message], None], Any]
"""A message, what to tell the broker about it, and the `_unique_id` to be remembered if any."""


class Handler(Protocol):
    """What the requests are made to."""

    def process_notification(
        self, context: RequestContext, notification: Notification, acknowledge: Callable[[], None]
    ) -> None:
        """Recover from a failure.

        Args:
            context: who reported it.
            notification: as it came.
            acknowledge: tells the broker that the message need not come again. Called from any
                thread, as soon as that is certain; a return does it too.

        Raises:
            Stopped: the process ends; unless acknowledged, the message goes to another engine.
        """


class Waits(Protocol):
    """The part of a clock that is used here."""

    def sleep(self, seconds: float) -> None:
        """Wait, or raise `Stopped`."""


class Server:
    """Consumes in one thread, works in others.

    Only the consuming thread touches the channel: the others leave their verdicts in a queue, which
    it empties ten times a second.

    Args:
        broker: whence.
        handler: does the work.
        threads: requests that are worked on at once; the others wait here, not acknowledged.
        clock: for the waits between attempts to connect.
    """

    def __init__(self, broker: Broker, handler: Handler, *, threads: int, clock: Waits) -> None:
        self._broker = broker
        self._clock = clock
        self._queues = broker.engine_queues()
        self._methods = {"process_notification": handler.process_notification}
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rpc-worker")
        self._thread = threading.Thread(target=self._serve, name="rpc-server", daemon=True)
        self._verdicts: deque[_Verdict] = deque()
        self._acknowledged: deque[str] = deque(maxlen=16)
        self._stopping = threading.Event()
        self._closing = threading.Event()

    def start(self) -> None:
        """Begin to consume as soon as there is a broker."""
        self._thread.start()

    def stop_consuming(self) -> None:
        """Begin no more requests; those that are under way can still be acknowledged."""
        self._stopping.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the connection; what is not acknowledged by now goes to another engine.

        Takes a few seconds at most. Requests that still run are not waited for.
        """
        self.stop_consuming()
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(_CLOSE_TIMEOUT)

    def _serve(self) -> None:
        """Come back after every loss of the connection. Spec: rpc §9."""
        pauses = self._broker.pauses(after_loss=False)
        while not self._stopping.is_set():
            try:
                with self._broker.connected(timeout=_ANSWER_TIMEOUT) as link:
                    channel = self._consume(link)
                    pauses = self._broker.pauses(after_loss=True)
                    self._drain(link, channel)
            except Exception as error:  # noqa: BLE001 - no trouble with a connection ends the engine
                pause = next(pauses)
                log.warning("Connection failed: %s (retrying in %.1f seconds)", error, pause)
                self._wait(pause)

    def _wait(self, seconds: float) -> None:
        try:
            while seconds > 0 and not self._stopping.is_set():
                self._clock.sleep(min(_TICK, seconds))
                seconds -= _TICK
        except errors.Stopped:
            self._stopping.set()

    def _consume(self, link: Any) -> Any:
        queues = copy.deepcopy(self._queues)  # declaring marks them, and the broker may be another
        channel = declare(link, [entity for queue in queues for entity in (queue.exchange, queue)])
        receive = partial(self._receive, channel)
        # Not with kombu's Consumer, whose tags go on counting over all connections.
        for tag, queue in enumerate(queues, start=1):
            queue.bind(channel).consume(consumer_tag=str(tag), callback=receive, no_ack=False)
        log.info("Waiting for requests in %s", ", ".join(queue.name for queue in queues))
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
        """Tell the broker what became of its messages; those of a lost channel come again."""
        while self._verdicts:
            message, verdict, unique_id = self._verdicts.popleft()
            if message.channel is not channel or message.acknowledged:
                continue
            verdict(message)
            if unique_id is not None:
                self._acknowledged.append(unique_id)

    def _receive(self, channel: Any, raw: Any) -> None:
        """Called by kombu, in the consuming thread."""
        message = channel.message_to_python(raw)
        try:
            self._accept(message)
        except errors.BadMessage as error:
            log.warning("Failed to process message, skipping it: %s", error)
            self._verdicts.append((message, Message.reject, None))
        except Exception:
            log.exception("Failed to process message, skipping it")
            self._verdicts.append((message, Message.reject, None))

    def _accept(self, message: Message) -> None:
        if message.errors:
            raise errors.BadMessage(f"The body cannot be decompressed: {message.errors[0][1]}")
        if not message.body:
            self._verdicts.append((message, Message.ack, None))
            return
        request = envelope.unpack(message.body, message.content_type)
        unique_id = request.get("_unique_id")
        if unique_id is not None and unique_id in self._acknowledged:
            log.error("Ignoring duplicate of %s", envelope.subject(request))
            self._verdicts.append((message, Message.ack, unique_id))
            return
        try:
            future = self._pool.submit(self._work, message, request)
        except RuntimeError:
            if not self._stopping.is_set():
                raise
            self._verdicts.append((message, Message.requeue, None))
        else:
            future.add_done_callback(partial(self._give_back, message))

    def _give_back(self, message: Message, future: Future[None]) -> None:
        if future.cancelled():
            self._verdicts.append((message, Message.requeue, None))

    def _work(self, message: Message, request: Mapping[str, Any]) -> None:
        """One request, in a thread of the pool."""
        done: _Verdict = (message, Message.ack, request.get("_unique_id"))
        verdict = done
        try:
            self._dispatch(request, partial(self._verdicts.append, done))
        except errors.Stopped:
            verdict = (message, Message.requeue, None)
        except errors.BadMessage as error:
            log.warning("Cannot run %s: %s", envelope.subject(request), error)
        except Exception:
            # Not requeued: it would fail for ever, and the periodic task finds the row.
            log.exception("Failed to process %s", envelope.subject(request))
        self._verdicts.append(verdict)

    def _dispatch(self, request: Mapping[str, Any], acknowledge: Callable[[], None]) -> None:
        """Find the method and run it. Spec: rpc §7.1."""
        method, version = request.get("method"), request.get("version", "1.0")
        if request.get("namespace") is not None or not envelope.compatible(version, _VERSION):
            raise errors.BadMessage(
                f"Endpoint does not support RPC version {version}. Attempted method: {method}"
            )
        run = self._methods.get(method) if isinstance(method, str) else None
        if run is None:
            raise errors.BadMessage(f"Endpoint does not support RPC method {method}")
        arguments = request.get("args", {})
        if not isinstance(arguments, dict) or set(arguments) != {"notification"}:
            raise errors.BadMessage(f"{method} takes one argument, notification")
        context = envelope.context_from_wire(request)
        run(context, envelope.notification_from_wire(arguments["notification"]), acknowledge)
