"""What one engine process knows of its own claims beyond the rows."""

import threading
import uuid
from dataclasses import dataclass

from masakari_ng.domain import RequestContext


@dataclass(frozen=True, slots=True)
class Origin:
    """Why a notification is worked on.

    Attributes:
        context: gives the request id that Nova sees.
        retry: a periodic retry, the last one: `error` becomes `failed` at its end.
        expired: too old to be recovered.
    """

    context: RequestContext
    retry: bool = False
    expired: bool = False


def own_origin(*, retry: bool = False) -> Origin:
    """Work that no request has asked for."""
    context = RequestContext(request_id=f"req-{uuid.uuid4()}", is_admin=True)
    return Origin(context, retry=retry)


class Roster:
    """Notifications by uuid: those a thread of this process works on, and those that wait.

    It is kept before the database is asked, so it may know more than the rows, never less.

    Args:
        threads: how many can be worked on at once.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._origins: dict[str, Origin] = {}
        self._active: set[str] = set()
        self._changed = threading.Condition()

    def enter(self, notification: str, origin: Origin) -> bool:
        """Register what is about to be claimed; False if it is known already."""
        with self._changed:
            if notification in self._origins:
                return False
            self._origins[notification] = origin
            self._active.add(notification)
            return True

    def expect(self, notification: str, origin: Origin) -> None:
        """Register a claim that waits, unless it is known already."""
        with self._changed:
            self._origins.setdefault(notification, origin)

    def begin(self, notification: str) -> bool:
        """A thread turns to what waited; False if it waits no longer, or all have work."""
        with self._changed:
            if notification in self._active or notification not in self._origins:
                return False
            if len(self._active) >= self._threads:
                return False
            self._active.add(notification)
            return True

    def wait(self, notification: str) -> None:
        """No thread works on it for now."""
        with self._changed:
            self._active.discard(notification)
            self._changed.notify_all()

    def leave(self, notification: str) -> None:
        """This process has done with it."""
        with self._changed:
            self._origins.pop(notification, None)
            self._active.discard(notification)
            self._changed.notify_all()

    def origin(self, notification: str) -> Origin:
        """Why it is worked on."""
        with self._changed:
            return self._origins.get(notification) or own_origin()

    def free(self) -> int:
        """Threads without work; negative if more was entered than can be worked on."""
        with self._changed:
            return self._threads - len(self._active)

    def active(self) -> frozenset[str]:
        """Those that a thread works on."""
        with self._changed:
            return frozenset(self._active)

    def waiting(self) -> list[str]:
        """Those that no thread works on, in the order in which they came."""
        with self._changed:
            return [known for known in self._origins if known not in self._active]

    def wait_idle(self, timeout: float) -> bool:
        """Wait until no thread works any more; False if some still does after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._active, timeout)
