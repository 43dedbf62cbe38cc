"""Tells the service manager how the service does, as systemd's `Type=notify` asks."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


def wanted() -> bool:
    """Whether anybody listens."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def tell(state: str) -> None:
    """Send `READY=1` or the like; a manager that is away is no reason to end."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith("@"):
        address = f"\0{address[1:]}"  # in the abstract name space
    if address:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.connect(address)
            to.send(state.encode())


def tell_reload() -> None:
    """Say that a reload has begun; `READY=1` ends it."""
    tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


class Engine(Protocol):
    """What is looked at of it."""

    @property
    def consuming(self) -> bool:
        """Whether notifications arrive."""

    @property
    def alive(self) -> bool:
        """Whether nothing has ended that must not."""


class Report:
    """Signs of life of the engine, given from its main loop: when that hangs, they end.

    A container has no service manager: its health check looks at the age of a file, which
    `MASAKARI_NG_ALIVE` names.

    Args:
        engine: has been started.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ready = False
        self._file = os.environ.get("MASAKARI_NG_ALIVE")
        tell("STATUS=Waiting for the message broker")

    def tick(self, *, stopping: bool) -> None:
        """Say `READY=1` once the queues are read, and `WATCHDOG=1` as long as all goes on.

        Args:
            stopping: the threads may have ended, for which there is another limit.
        """
        if not self._ready and self._engine.consuming:
            self._ready = True
            tell("READY=1\nSTATUS=Reading the queues")
        if stopping or self._engine.alive:
            tell("WATCHDOG=1")
            if self._file and self._ready:
                with contextlib.suppress(OSError):
                    Path(self._file).touch()

    @contextlib.contextmanager
    def reloading(self) -> Iterator[None]:
        """Around a reload; before the first `READY=1` it is none of the manager's business."""
        if self._ready:
            tell_reload()
        yield
        if self._ready:
            tell("READY=1")
