"""Stands for systemd: listens to what services tell it."""

import contextlib
import socket
from pathlib import Path

_MANY = 10


class Manager:
    """What a service manager was told, in its order.

    Args:
        path: of the socket, for `NOTIFY_SOCKET`.
    """

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))

    def next(self, *, timeout: float = 60) -> str:
        """The next message.

        Raises:
            TimeoutError: none came for `timeout` seconds.
        """
        self._socket.settimeout(timeout)
        return self._socket.recv(1000).decode()

    def after(self, repeated: str) -> str:
        """The next message that is another one."""
        while (told := self.next()) == repeated:
            pass
        return told

    def rest(self, silence: float = 0.01) -> list[str]:
        """All messages, until none has come for so many seconds."""
        told: list[str] = []
        with contextlib.suppress(TimeoutError):
            while len(told) < _MANY:
                told.append(self.next(timeout=silence))
        return told

    def close(self) -> None:
        self._socket.close()
