"""The only place that publishes. Spec: rpc §2.2, §3.1."""

import contextlib
import logging
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from kombu.messaging import Producer

from masakari_ng import errors, metrics
from masakari_ng.messaging import envelope
from masakari_ng.messaging.connection import Broker, release
from masakari_ng.messaging.topology import Mailbox, declare

log = logging.getLogger(__name__)

_GLANCE = 0.001


@dataclass(frozen=True, slots=True)
class Letter:
    """A message on its way.

    Attributes:
        expiration: seconds after which the broker drops it; None: never.
    """

    body: bytes
    to: Mailbox
    expiration: float | None = None


class Outbox:
    """Sends, from any thread.

    One thread owns the connection. So a caller waits no longer than it has said, whatever name
    lookup, connect or broker hangs; and since that thread starts with the first letter, a server
    may fork its workers before.

    Args:
        broker: whose.
        timeout: seconds that a caller waits until the broker has taken its letter.
        name: of the thread.
        timeout_away: the same while the broker is known to be away, lest callers pile up.
    """

    def __init__(
        self, broker: Broker, *, timeout: float, name: str, timeout_away: float | None = None
    ) -> None:
        self._broker = broker
        self._timeout = timeout
        self._timeout_away = timeout_away or timeout
        self._name = name
        self._jobs: queue.SimpleQueue[tuple[Future[None], Letter] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._away = self._closed = False

    def send(self, letter: Letter) -> None:
        """Have the broker take a letter.

        Raises:
            BrokerRefused: it has no queue for it, or one of another kind.
            BrokerUnavailable: it has not taken it in time; it may yet do so.
        """
        done: Future[None] = Future()
        with self._lock:  # so that nothing comes behind the end
            if self._closed:
                raise errors.BrokerUnavailable("Nothing is sent any more")
            self._jobs.put((done, letter))
            if self._thread is None or not self._thread.is_alive():  # not alive: in a forked child
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        timeout = self._timeout_away if self._away else self._timeout
        try:
            done.result(timeout)
            self._away = False
            metrics.CONNECTED.set(1, self._name)
        except errors.BrokerRefused:
            raise
        except Exception as error:
            self._away = True
            metrics.CONNECTED.set(0, self._name)
            done.cancel()
            reason = str(error) or f"no answer within {timeout} seconds"
            raise errors.BrokerUnavailable(
                f"The broker has not taken the message: {reason}"
            ) from error

    def close(self) -> None:
        """End the connection and its thread; one that hangs is left behind."""
        with self._lock:
            self._closed = True
            self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(self._timeout)

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
            done, letter = job
            if done.set_running_or_notify_cancel():
                try:
                    sender.send(letter)
                except Exception as error:  # noqa: BLE001 - raised where somebody waits for it
                    done.set_exception(error)
                else:
                    done.set_result(None)
        sender.close()


class _Sender:
    """A connection in confirm mode, made when it is needed; for one thread."""

    def __init__(self, broker: Broker, timeout: float) -> None:
        self._broker = broker
        self._timeout = timeout
        self._declared: set[str] = set()
        self._link: Any = None
        self._producer: Any = None
        self._returned = False

    def send(self, letter: Letter) -> None:
        """Publish; once more on a new connection if the present one turns out to be dead."""
        fresh = self._link is None
        try:
            if fresh:
                self._connect()
            self._publish(letter)
        except errors.BrokerRefused:
            raise
        except Exception as error:
            refused = self._link is not None and isinstance(error, self._link.channel_errors)
            self._drop(error)
            if refused:
                raise errors.BrokerRefused(str(error)) from error
            silent = isinstance(error, TimeoutError) and error.errno is None  # the time is over
            if fresh or silent:
                raise
            self.send(letter)

    def keep_alive(self) -> None:
        """Send and read heartbeats."""
        if self._link is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                self._link.drain_events(timeout=_GLANCE)
            self._link.heartbeat_check(rate=self._broker.heartbeat_rate)
        except Exception as error:  # noqa: BLE001 - the next letter connects anew
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
        self._declared = set()
        self._link = self._broker.connect(timeout=self._timeout, confirm=True)
        channel = self._link.channel()
        if hasattr(channel, "events"):  # not in memory, where nothing is returned
            channel.events["basic_return"].add(self._note_return)
        self._producer = Producer(channel)

    def _publish(self, letter: Letter) -> None:
        queue, declared = letter.to.queue, letter.to.declared
        if declared and queue.name not in self._declared:  # those of peers are many: none is kept
            declare(self._link, declared).close()
            self._declared.add(queue.name)
        for _ in range(2):
            self._returned = False
            self._producer.publish(
                letter.body,
                exchange=queue.exchange.name,
                routing_key=queue.routing_key,
                mandatory=True,
                expiration=letter.expiration,
                compression=self._broker.compression,
                **envelope.PROPERTIES,
            )
            if not self._returned:
                return
            if not declared:
                break
            log.info("There is no queue %s, declaring it", queue.name)
            declare(self._link, [queue]).close()
        raise errors.BrokerRefused(f"There is no queue {queue.name} that takes the message")

    def _note_return(self, *_returned: object) -> None:
        self._returned = True
