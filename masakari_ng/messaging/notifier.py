"""How versioned notifications leave: drivers, a buffer, and a thread that empties it.

Spec: rpc §10.6
"""

import contextlib
import json
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg

from masakari_ng import errors, metrics
from masakari_ng.messaging import envelope
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.outbox import Letter, Outbox

log = logging.getLogger(__name__)

_TIMEOUT = 10.0
_CLOSE_TIMEOUT = 3.0
_LOGGER = "oslo.messaging.notification."

_Fields = Mapping[str, Any]


class Notifier:
    """Sends in the background: a broker that is away holds up nobody.

    Args:
        conf: options of `conf.messaging` and `event_buffer`.

    Attributes:
        dropped: events lost so far because too many waited already.

    Raises:
        ConfigurationError: as `Broker`.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        options = conf.oslo_messaging_notifications
        self._retry: int = options.retry
        known: dict[str, Callable[[_Fields, _Fields], None]] = {
            "messagingv2": self._post_packed,
            "messaging": self._post_bare,
            "log": _log,
            "noop": lambda _message, _context: None,
        }
        self._drivers = [known[name] for name in options.driver if name in known]
        for name in set(options.driver) - known.keys():
            log.warning("There is no driver '%s' for versioned notifications", name)
        self._broker = Broker(conf, options.transport_url)
        self._outbox = Outbox(self._broker, timeout=_TIMEOUT, name="event-sender")
        self._waiting: queue.Queue[Letter | None] = queue.Queue(conf.masakari_ng.event_buffer)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._told = 0
        self.dropped = 0

    def send(self, message: _Fields, context: _Fields) -> None:
        """Hand an event over to each driver in turn; returns at once."""
        for driver in self._drivers:
            driver(message, context)

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        self._closing.set()
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._waiting.put(None, timeout=_CLOSE_TIMEOUT)
            self._thread.join(_CLOSE_TIMEOUT)
        self._outbox.close()

    def _post_packed(self, message: _Fields, context: _Fields) -> None:
        self._post(message, envelope.pack({**message, **envelope.unique(), **context}))

    def _post_bare(self, message: _Fields, context: _Fields) -> None:
        self._post(message, json.dumps({**message, **envelope.unique(), **context}).encode())

    def _post(self, message: _Fields, body: bytes) -> None:
        box = self._broker.topology.event_box(message["priority"].lower())
        try:
            self._waiting.put_nowait(Letter(body, box))
        except queue.Full:
            if self.dropped == self._told:
                log.warning("Too many versioned notifications wait for the broker; dropping some")
            self.dropped += 1
            metrics.EVENTS_DROPPED.count("buffer_full")
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # not alive: in a forked child
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        for letter in iter(self._waiting.get, None):
            self._deliver(letter)
            dropped = self.dropped
            if dropped != self._told:
                log.warning("%d versioned notifications have been dropped", dropped - self._told)
                self._told = dropped

    def _deliver(self, letter: Letter) -> None:
        """Try until the broker is there; not again once this notifier is closed."""
        attempts, pauses = 0, self._broker.pauses(after_loss=False)
        while True:
            try:
                self._outbox.send(letter)
            except errors.BrokerUnavailable as error:
                refused = isinstance(error, errors.BrokerRefused)
                if refused or attempts == self._retry or self._closing.is_set():
                    metrics.EVENTS_DROPPED.count("not_sent")
                    log.error(  # noqa: TRY400 - where does not matter
                        "Could not send notification to versioned_notifications. Payload=%s: %s",
                        letter.body.decode(),
                        error,
                    )
                    return
            else:
                return
            attempts += 1
            self._closing.wait(next(pauses))


def _log(message: _Fields, _context: _Fields) -> None:
    logging.getLogger(_LOGGER + message["event_type"]).info("%s", json.dumps(message))
