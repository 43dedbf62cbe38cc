"""Locks over all API processes, kept by a lock service that tooz knows. Spec: configuration §1."""

import contextlib
import logging
import threading
import uuid
from collections.abc import Iterator
from typing import Any

from stevedore.exception import NoMatches
from tooz import coordination

from masakari_ng import errors

log = logging.getLogger(__name__)


class Locks:
    """Locks by name, each held by one thread of all processes at a time.

    They save work and decide nothing: who cannot have one in time goes on without it.

    Args:
        url: tooz URL of the lock service, which is contacted at the first use.
        patience: seconds to wait for a lock.

    Raises:
        ConfigurationError: there is no driver for the URL.
    """

    def __init__(self, url: str, *, patience: float = 5.0) -> None:
        self._url = url
        self._patience = patience
        self._connecting = threading.Lock()
        self._coordinator: coordination.CoordinationDriver | None = None
        try:
            self._driver()
        except (ImportError, NoMatches) as error:
            raise errors.ConfigurationError(f"[coordination] backend_url: {error}") from error

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[None]:
        """A block that waits for the lock and holds it, if that can be done."""
        lock: Any = None
        with _best_effort(f"Going on without the lock {name}"):
            lock = self._acquired(name)
        try:
            yield
        finally:
            if lock is not None:
                with _best_effort(f"The lock {name} was not given back"):
                    lock.release()

    def close(self) -> None:
        """End the connection to the lock service."""
        coordinator, self._coordinator = self._coordinator, None
        if coordinator is not None:
            with _best_effort("The lock service was left without a farewell"):
                coordinator.stop()

    def _acquired(self, name: str) -> Any:
        lock: Any = self._connected().get_lock(name.encode())
        if not lock.acquire(blocking=self._patience):
            raise errors.WaitTimeout(f"Not free within {self._patience} seconds")
        return lock

    def _connected(self) -> coordination.CoordinationDriver:
        if not self._connecting.acquire(timeout=self._patience):
            raise errors.WaitTimeout(f"No connection within {self._patience} seconds")
        try:
            if self._coordinator is None:
                coordinator = self._driver()  # one that could not start cannot start again
                coordinator.start()
                self._coordinator = coordinator
            return self._coordinator
        finally:
            self._connecting.release()

    def _driver(self) -> coordination.CoordinationDriver:
        return coordination.get_coordinator(self._url, uuid.uuid4().hex.encode())


@contextlib.contextmanager
def _best_effort(otherwise: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - each driver raises its own, and nothing depends on it
        log.warning("%s: %s: %s", otherwise, type(error).__name__, error)
