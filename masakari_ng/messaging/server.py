"""The engine's side: takes requests off the queues, runs them in threads, answers.

Spec: rpc §7 to §9
"""

import logging
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from kombu.message import Message

from masakari_ng import errors, logs
from masakari_ng.messaging import envelope
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.consumer import Consumer
from masakari_ng.messaging.dispatcher import Details, Dispatcher, Handler
from masakari_ng.messaging.replies import Replies, Time

log = logging.getLogger(__name__)

_REMEMBERED = 16


class Server:
    """Consumes in one thread, works in others.

    Args:
        broker: whence.
        handler: does the work.
        threads: requests that are worked on at once; the others wait here, not acknowledged.
        clock: for the waits between attempts to connect and to answer.
        details: what the tasks of a recovery have reported; None: nobody can ask.
        ping: whether peers may ask if anybody is there.
    """

    def __init__(
        self,
        broker: Broker,
        handler: Handler,
        *,
        threads: int,
        clock: Time,
        details: Details | None = None,
        ping: bool = False,
    ) -> None:
        self._dispatcher = Dispatcher(handler, details, ping=ping)
        self._replies = Replies(broker, clock)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rpc-worker")
        self._acknowledged: deque[str] = deque(maxlen=_REMEMBERED)
        self._stopping = threading.Event()
        self._consumer = Consumer(
            broker,
            broker.topology.engine_queues(),
            self._receive,
            name="rpc-server",
            sleep=clock.sleep,
        )

    @property
    def consuming(self) -> bool:
        """Whether the queues are read at this moment."""
        return self._consumer.ready.is_set()

    @property
    def alive(self) -> bool:
        """Whether they are read, or will be once there is a broker."""
        return self._consumer.alive

    def start(self) -> None:
        """Begin to consume as soon as there is a broker."""
        self._consumer.start()

    def stop_consuming(self) -> None:
        """Begin no more requests; those that are under way can still be acknowledged."""
        self._stopping.set()
        self._consumer.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the connections; what is not acknowledged by now goes to another engine.

        Takes a few seconds at most. Requests that still run are not waited for.
        """
        self.stop_consuming()
        self._consumer.close()
        self._replies.close()

    def _receive(self, message: Message) -> None:
        if not message.body and not message.errors:
            self._consumer.settle(message, Message.ack)
            return
        request = envelope.received(message)
        unique_id = request.get("_unique_id")
        if unique_id is not None and unique_id in self._acknowledged:
            log.error("Ignoring duplicate of %s", envelope.subject(request))
            self._acknowledge(message, request)
            return
        try:
            future = self._pool.submit(self._work, message, request)
        except RuntimeError:
            if not self._stopping.is_set():
                raise
            self._consumer.settle(message, Message.requeue)
        else:
            future.add_done_callback(partial(self._give_back, message))

    def _give_back(self, message: Message, future: Future[None]) -> None:
        if future.cancelled():
            self._consumer.settle(message, Message.requeue)

    def _acknowledge(self, message: Message, request: Mapping[str, Any]) -> None:
        """Remembered once the broker knows, or a redelivery would be taken for a duplicate."""
        unique_id = request.get("_unique_id")
        if unique_id is None:
            self._consumer.settle(message, Message.ack)
        else:
            remember = partial(self._acknowledged.append, unique_id)
            self._consumer.settle(message, Message.ack, remember)

    def _work(self, message: Message, request: Mapping[str, Any]) -> None:
        with logs.about(**envelope.facts(request)):
            self._answer(message, request)

    def _answer(self, message: Message, request: Mapping[str, Any]) -> None:
        """One request, in a thread of the pool."""
        acknowledge = partial(self._acknowledge, message, request)
        result: object = None
        failure: Exception | None = None
        try:
            with self._replies.kept_alive(request):
                result = self._dispatcher.run(request, acknowledge)
        except errors.Stopped:
            self._consumer.settle(message, Message.requeue)
            return
        except errors.MasakariError as error:
            log.warning("Cannot run %s: %s", envelope.subject(request), error)
            failure = error
        except Exception as error:
            # Not requeued: it would fail for ever, and the periodic task finds the row.
            log.exception("Failed to process %s", envelope.subject(request))
            failure = error
        acknowledge()
        self._replies.send(request, result, failure)
