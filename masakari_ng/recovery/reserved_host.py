"""Which reserved hosts are being filled by this process. Spec: recovery §12."""

import contextlib
import threading
from collections.abc import Iterator

from masakari_ng import errors


class HostLocks:
    """One recovery at a time fills a reserved host; nobody waits for another one."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._changing = threading.Lock()

    @contextlib.contextmanager
    def held(self, host: str) -> Iterator[None]:
        """Hold the lock of a host.

        Raises:
            LockAlreadyAcquired: another recovery holds it.
        """
        with self._changing:
            if host in self._held:
                raise errors.LockAlreadyAcquired(host)
            self._held.add(host)
        try:
            yield
        finally:
            with self._changing:
                self._held.remove(host)
