"""Signals as a stream of numbers that a program reads when it likes."""

import os
import select
import signal
from collections.abc import Collection


class Signals:
    """Collects signals from now on.

    Python runs a handler between any two instructions of the main thread, also while that holds a
    lock, and in any green thread. So no handler does anything here: the interpreter writes the
    number into a pipe, and whoever reads it may take locks, log and wait as usual.

    Args:
        numbers: the signals to be collected.
    """

    def __init__(self, numbers: Collection[signal.Signals]) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer)
        for number in numbers:
            signal.signal(number, _leave_to_the_pipe)

    def push(self, number: int) -> None:
        """Add a number of one's own, from any thread."""
        os.write(self._writer, bytes([number]))

    def next(self, timeout: float | None) -> int | None:
        """Wait for the next number.

        Args:
            timeout: seconds; None waits for ever.

        Returns:
            None if the time is up.
        """
        ready, _, _ = select.select([self._reader], [], [], timeout)
        return os.read(self._reader, 1)[0] if ready else None


def _leave_to_the_pipe(_number: int, _frame: object) -> None:
    """Stand in for the default action, which would end the process."""
