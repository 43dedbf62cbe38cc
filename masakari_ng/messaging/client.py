"""The API's side: requests to the engines. Spec: rpc §3.1, §11."""

import contextlib
import logging
import queue
import threading
from concurrent.futures import Future
from typing import Any

from kombu.messaging import Producer

from masakari_ng import errors
from masakari_ng.domain import Notification, RequestContext
from masakari_ng.messaging import envelope
from masakari_ng.messaging.connection import Broker, declare, release

log = logging.getLogger(__name__)

_Job = tuple[Future[None], bytes]
_GLANCE = 0.001


class EngineClient:
    """Sends requests, from any thread.

    One thread owns the connection. So a caller waits no longer than it has said, whatever name
    lookup, connect or broker hangs; and since that thread starts with the first request, a server
    may fork its workers before.

    Args:
        broker: where to.
        timeout: seconds that a caller waits until the broker has taken its request.
    """

    def __init__(self, broker: Broker, *, timeout: float) -> None:
        self._broker = broker
        self._timeout = timeout
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def process_notification(self, context: RequestContext, notification: Notification) -> None:
        """Have an engine recover from a failure.

        Args:
            context: who reported it.
            notification: as it is stored.

        Raises:
            BrokerUnavailable: the broker has not taken the request in time; it may yet do so.
        """
        request = envelope.cast("process_notification", "1.0", notification, context)
        self._send(envelope.pack(request))

    def close(self) -> None:
        """End the connection and its thread; one that hangs is left behind."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join(self._timeout)

    def _send(self, body: bytes) -> None:
        done: Future[None] = Future()
        self._jobs.put((done, body))
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # not alive: in a forked child
                self._thread = threading.Thread(target=self._run, name="rpc-client", daemon=True)
                self._thread.start()
        try:
            done.result(self._timeout)
        except Exception as error:
            done.cancel()
            reason = str(error) or f"no answer within {self._timeout} seconds"
            raise errors.BrokerUnavailable(
                f"The broker has not taken the request: {reason}"
            ) from error

    def _run(self) -> None:
        sender = _Sender(self._broker, self._timeout)
        while True:
            try:
                job = self._jobs.get(timeout=self._broker.heartbeat_interval)
            except queue.Empty:
                sender.keep_alive()
                continue
            if job is None:
                break
            _work(sender, *job)
        sender.close()


def _work(sender: "_Sender", done: Future[None], body: bytes) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        sender.send(body)
    except Exception as error:  # noqa: BLE001 - raised again where somebody waits for it
        done.set_exception(error)
    else:
        done.set_result(None)


class _Sender:
    """A connection in confirm mode, made when it is needed; for one thread."""

    def __init__(self, broker: Broker, timeout: float) -> None:
        self._broker = broker
        self._timeout = timeout
        self._link: Any = None
        self._queue: Any = None
        self._producer: Any = None
        self._returned = False

    def send(self, body: bytes) -> None:
        """Publish; once more on a new connection if the present one turns out to be dead."""
        fresh = self._link is None
        try:
            if fresh:
                self._connect()
            self._publish(body)
        except Exception as error:
            self._drop(error)
            silent = isinstance(error, TimeoutError) and error.errno is None  # the time is over
            if fresh or silent:
                raise
            self.send(body)

    def keep_alive(self) -> None:
        """Send and read heartbeats."""
        if self._link is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                self._link.drain_events(timeout=_GLANCE)
            self._link.heartbeat_check(rate=self._broker.heartbeat_rate)
        except Exception as error:  # noqa: BLE001 - the next request connects anew
            self._drop(error)

    def close(self) -> None:
        if self._link is not None:
            release(self._link)

    def _drop(self, reason: Exception) -> None:
        log.debug("Connection to the broker given up: %s", reason)
        link, self._link = self._link, None
        if link is not None:
            link.collect()

    def _connect(self) -> None:
        self._link = self._broker.connect(timeout=self._timeout, confirm=True)
        self._queue = self._broker.request_queue()
        exchange = self._queue.exchange
        if self._broker.in_memory:  # nothing is returned there, so the queue has to exist
            channel = declare(self._link, [exchange, self._queue])
        else:
            channel = declare(self._link, [exchange])
            channel.events["basic_return"].add(self._note_return)
        self._producer = Producer(channel, exchange, self._queue.name, auto_declare=False)

    def _publish(self, body: bytes) -> None:
        for _ in range(2):
            self._returned = False
            self._producer.publish(body, mandatory=True, **envelope.PROPERTIES)
            if not self._returned:
                return
            log.info("There is no queue %s, declaring it", self._queue.name)
            declare(self._link, [self._queue]).close()
        raise errors.BrokerUnavailable(f"Queue {self._queue.name} takes no message")

    def _note_return(self, *_returned: object) -> None:
        self._returned = True
