"""Time that passes only where somebody sleeps."""

import threading
import time
from datetime import UTC, datetime, timedelta

from masakari_ng import errors


class SimulatedClock:
    """A `Clock` for tests: `sleep` advances `now` at once and lets other threads run.

    Attributes:
        now: simulated seconds since the clock was made; a test may set it.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._start = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
        self._stopped = False
        self._lock = threading.Lock()

    def monotonic(self) -> float:
        return self.now

    def utcnow(self) -> datetime:
        return self._start + timedelta(seconds=self.now)

    def sleep(self, seconds: float) -> None:
        with self._lock:
            if not self._stopped:
                self.now += max(0.0, seconds)
        time.sleep(0)
        if self._stopped:
            raise errors.Stopped("The service is stopping")

    def stop(self) -> None:
        """End all waits, as `SystemClock.stop`."""
        self._stopped = True
