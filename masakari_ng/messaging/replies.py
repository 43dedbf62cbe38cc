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
        self._outbox = Outbox(
            broker, broker.topology.reply_box, timeout=_TIMEOUT, name="rpc-replies"
        )
        self._patience = broker.reply_patience
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
        letter = _letter(request, result, failure, ending=True)
        if letter is None or self._given_up(letter.to):
            return
        deadline = self._clock.monotonic() + self._patience
        while not self._delivered(letter):
            if self._clock.monotonic() >= deadline:
                log.error(
                    "The reply %s failed to send after %d seconds due to a missing queue (%s). "
                    "Abandoning...",
                    request["_msg_id"],
                    self._patience,
                    letter.to,
                )
                self._abandon(letter.to)
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
        while not over.wait(pause):
            letter = _letter(request, None, None, ending=False)
            if letter is not None:
                self._delivered(letter)

    def _delivered(self, letter: Letter) -> bool:
        try:
            self._outbox.send(letter)
        except errors.BrokerUnavailable as error:
            log.debug("No reply to %s: %s", letter.to, error)
            return False
        return True

    def _given_up(self, queue: str) -> bool:
        return self._abandoned.get(queue, 0.0) > self._clock.monotonic()

    def _abandon(self, queue: str) -> None:
        now = self._clock.monotonic()
        kept = {name: until for name, until in self._abandoned.items() if until > now}
        newest = list(kept.items())[1 - _MOST_ABANDONED :]
        self._abandoned = dict(newest) | {queue: now + _MEMORY}


def _letter(
    request: Mapping[str, Any], result: object, failure: Exception | None, *, ending: bool
) -> Letter | None:
    """The reply to a request; None if it wants none."""
    if request.get("_msg_id") is None:
        return None
    queue = request.get("_reply_q")
    if not isinstance(queue, str):
        log.warning("%s wants a reply and has no queue for it", envelope.subject(request))
        return None
    told = None if failure is None else failures.describe(failure)
    return Letter(envelope.pack(envelope.reply(request, result, told, ending=ending)), to=queue)
