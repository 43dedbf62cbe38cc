"""Answers to calls, and signs of life while a method runs. Spec: rpc §7.4."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from masakari_ng import errors
from masakari_ng.messaging import envelope, failures
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.outbox import Letter, Outbox

log = logging.getLogger(__name__)

_TIMEOUT = 5.0
_PAUSE = 0.25
_SHORTEST_PERIOD = 2
_MEMORY, _MOST_ABANDONED = 60.0, 200


class Time(Protocol):
    """The part of a clock that is used here."""

    def monotonic(self) -> float:
        """Seconds since some moment in the past."""

    def sleep(self, seconds: float) -> None:
        """Wait, or raise `Stopped`."""


class Replies:
    """Answers those requests that want an answer.

    Args:
        broker: with the queues of those who wait.
        clock: for the waits between two attempts.
    """

    def __init__(self, broker: Broker, clock: Time) -> None:
        self._broker = broker
        self._outbox = Outbox(broker, timeout=_TIMEOUT, name="rpc-replies")
        self._clock = clock
        self._abandoned: dict[str, float] = {}

    def close(self) -> None:
        """End the connection."""
        self._outbox.close()

    def send(
        self, request: Mapping[str, Any], result: object = None, failure: Exception | None = None
    ) -> None:
        """Answer, however long it takes until the queue is there; after a minute nobody waits.

        Raises:
            Stopped: the process ends.
        """
        queue = _reply_queue(request)
        if queue is None or self._abandoned.get(queue, 0.0) > self._clock.monotonic():
            return
        told = None if failure is None else failures.describe(failure)
        reply = envelope.reply(request, result, told, ending=True)
        patience = self._broker.reply_patience
        deadline = self._clock.monotonic() + patience
        while not self._delivered(queue, reply):
            if self._clock.monotonic() >= deadline:
                log.error(
                    "The reply %s failed to send after %d seconds due to a missing queue (%s). "
                    "Abandoning...",
                    request["_msg_id"],
                    patience,
                    queue,
                )
                self._abandon(queue)
                return
            self._clock.sleep(_PAUSE)

    @contextlib.contextmanager
    def kept_alive(self, request: Mapping[str, Any]) -> Iterator[None]:
        """Show, if the request asks for it, that its method still runs."""
        period = request.get("_timeout")
        if not isinstance(period, int | float) or isinstance(period, bool):
            period = 0  # a peer that did not ask for it takes a sign of life for the answer
        over = threading.Event()
        beating = threading.Thread(
            target=self._beat, args=(request, period / 2, over), name="rpc-beat", daemon=True
        )
        if _SHORTEST_PERIOD <= period <= threading.TIMEOUT_MAX:
            beating.start()
        try:
            yield
        finally:
            over.set()
            if beating.ident is not None:
                beating.join()

    def _beat(self, request: Mapping[str, Any], pause: float, over: threading.Event) -> None:
        queue = _reply_queue(request)
        while queue is not None and not over.wait(pause):
            self._delivered(queue, envelope.reply(request, None, None, ending=False))

    def _delivered(self, queue: str, reply: Mapping[str, Any]) -> bool:
        try:
            self._outbox.send(Letter(envelope.pack(reply), self._broker.topology.reply_box(queue)))
        except errors.BrokerUnavailable as error:
            log.debug("No reply to %s: %s", queue, error)
            return False
        return True

    def _abandon(self, queue: str) -> None:
        self._abandoned.pop(queue, None)  # the oldest come first
        self._abandoned[queue] = self._clock.monotonic() + _MEMORY
        for oldest in list(self._abandoned)[:-_MOST_ABANDONED]:
            self._abandoned.pop(oldest, None)


def _reply_queue(request: Mapping[str, Any]) -> str | None:
    """Where a request wants its answer; None if it wants none."""
    if request.get("_msg_id") is None:
        return None
    queue = request.get("_reply_q")
    if isinstance(queue, str):
        return queue
    log.warning("%s wants a reply and has no queue for it", envelope.subject(request))
    return None
