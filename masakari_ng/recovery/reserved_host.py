"""Which reserved hosts are being filled by this process. Spec: recovery §12."""

import contextlib
import threading
from collections.abc import Iterator

from masakari_ng import errors
from masakari_ng.domain import Claim


class HostLocks:
    """One recovery at a time fills a reserved host; a recovery is known by its claim."""

    def __init__(self) -> None:
        self._owners: dict[str, Claim] = {}
        self._changing = threading.Lock()

    @contextlib.contextmanager
    def held(self, host: str, owner: Claim) -> Iterator[None]:
        """Hold the lock of a host, which the owner may have taken before.

        Raises:
            LockAlreadyAcquired: another recovery holds it.
        """
        if not self.take(host, owner):
            raise errors.LockAlreadyAcquired(host)
        try:
            yield
        finally:
            self.give_back(owner)

    def take(self, host: str, owner: Claim) -> bool:
        """Take the lock of a host; False if another recovery holds it."""
        with self._changing:
            return self._owners.setdefault(host, owner) == owner

    def give_back(self, owner: Claim) -> None:
        """Let go of whatever this recovery holds."""
        with self._changing:
            self._owners = {host: one for host, one in self._owners.items() if one != owner}
