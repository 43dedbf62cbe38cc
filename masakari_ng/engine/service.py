"""The engine's parts as one service that starts and stops."""

import logging
from collections.abc import Callable, Collection
from typing import Protocol

from masakari_ng.engine.manager import Manager
from masakari_ng.engine.periodic import Periodic
from masakari_ng.engine.takeover import Takeover
from masakari_ng.messaging.server import Server

log = logging.getLogger(__name__)

HAND_OVER_LIMIT = 5.0
"""Seconds that recoveries get, once all waits have been ended, to leave their claims."""
BEYOND_GRACE = 25.0
"""Seconds that a stop may take beyond `graceful_shutdown_timeout`: with its default of 60 it ends
before systemd's 90 are over."""


class Closable(Protocol):
    """A part that is used until the very end."""

    def close(self) -> None:
        """Give up connections."""


class Service:
    """Starts the parts, and stops them so that nothing that has been accepted is lost.

    Args:
        server: reads the queues.
        manager: recovers.
        takeover: keeps the claims.
        periodic: None if the periodic tasks are switched off.
        closing: what else is closed at the end.
        stop_waits: ends all waits of the process's clock with `Stopped`.
        graceful_timeout: seconds that running recoveries get to end by themselves.
    """

    def __init__(
        self,
        server: Server,
        manager: Manager,
        takeover: Takeover,
        periodic: Periodic | None,
        *,
        closing: Collection[Closable],
        stop_waits: Callable[[], None],
        graceful_timeout: float,
    ) -> None:
        self._server = server
        self._manager = manager
        self._takeover = takeover
        self._periodic = periodic
        self._closing = closing
        self._stop_waits = stop_waits
        self._graceful_timeout = graceful_timeout

    def start(self) -> None:
        """Begin to work; returns at once."""
        self._takeover.start()
        self._server.start()
        if self._periodic is not None:
            self._periodic.start()

    @property
    def consuming(self) -> bool:
        """Whether notifications arrive at this moment."""
        return self._server.consuming

    @property
    def alive(self) -> bool:
        """Whether the threads run without which nothing arrives and claims grow stale."""
        return self._server.alive and self._takeover.alive

    def stop(self) -> None:
        """Take nothing new, let recoveries end in time, leave the others to the next engine."""
        self._server.stop_consuming()
        self._manager.drain()
        if not self._manager.wait_idle(self._graceful_timeout):
            log.warning("Recoveries still run; the next engine will go on with them.")
        self._stop_waits()
        self._manager.wait_idle(HAND_OVER_LIMIT)
        self._takeover.join(HAND_OVER_LIMIT)
        if self._periodic is not None:
            self._periodic.join(HAND_OVER_LIMIT)
        self._manager.close()
        self._server.close()
        for part in self._closing:
            part.close()
