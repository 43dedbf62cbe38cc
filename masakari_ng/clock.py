"""The only waiting code: clocks that can be stopped, and polling."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from masakari_ng import errors


class Clock(Protocol):
    """Elapsed time is monotonic, in seconds; instants are naive UTC."""

    def monotonic(self) -> float:
        """Seconds since some moment in the past."""

    def utcnow(self) -> datetime:
        """The present instant, naive UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait.

        Raises:
            Stopped: the process has been asked to end.
        """


class SystemClock:
    """Real time; `stop` ends every wait, present and future, with `Stopped`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def monotonic(self) -> float:
        return time.monotonic()

    def utcnow(self) -> datetime:
        return datetime.now(UTC).replace(tzinfo=None)

    def sleep(self, seconds: float) -> None:
        if self._stopped.wait(max(0.0, seconds)):
            raise errors.Stopped("The service is stopping")

    def stop(self) -> None:
        """End all waits."""
        self._stopped.set()


def wait_until(
    condition: Callable[[], bool], *, interval: float, timeout: float, clock: Clock
) -> None:
    """Look at once, then every `interval` seconds counted from the start of the previous look.

    The limit is compared only after a look, so a slow look is never cut off. Spec: recovery §10.4.

    Args:
        condition: what to wait for; what it raises ends the wait.
        interval: seconds between the starts of two looks.
        timeout: limit in seconds; 0 means none.
        clock: measures and sleeps.

    Raises:
        WaitTimeout: not true when the limit had passed.
        Stopped: the process has been asked to end.
    """
    begin = clock.monotonic()
    while True:
        look = clock.monotonic()
        if condition():
            return
        now = clock.monotonic()
        if timeout and now - begin > timeout:
            raise errors.WaitTimeout(f"Not so after {timeout} seconds")
        clock.sleep(max(0.0, look + interval - now))
