"""Many clients at once that cost little: ready-made requests over plain sockets."""

import contextlib
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_TIMEOUT = 30.0


def request(method: str, path: str, body: object = None, **headers: str) -> bytes:
    """The bytes of a request; in the names of `headers`, `_` stands for `-`."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: api", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


class Connection:
    """One connection, kept open as long as the service wants."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def ask(self, asked: bytes) -> tuple[int, bytes]:
        """Status and body of the answer.

        Raises:
            OSError: there is none. After that the next request has a new connection.
        """
        try:
            return self._ask(asked)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, asked: bytes) -> tuple[int, bytes]:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), _TIMEOUT)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(asked)
        head, _, body = self._receive(lambda data: b"\r\n\r\n" in data).partition(b"\r\n\r\n")
        found = _LENGTH.search(head)
        length = int(found[1]) if found else 0
        if len(body) < length:
            body = self._receive(lambda data: len(data) >= length, body)
        if _CLOSE.search(head):
            self.close()
        return int(head.split(b" ", 2)[1]), body

    def _receive(self, enough: Callable[[bytearray], bool], begin: bytes = b"") -> bytearray:
        assert self._socket is not None
        data = bytearray(begin)
        while not enough(data):
            more = self._socket.recv(262_144)
            if not more:
                raise ConnectionResetError("closed without an answer")
            data += more
        return data


@dataclass
class Outcome:
    """What all clients together have seen.

    Attributes:
        seconds: of each answer.
        statuses: how many answers had which status.
        failures: how many requests had no answer, by reason.
    """

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


@contextlib.contextmanager
def load(
    port: int,
    clients: int,
    make: Callable[[], bytes],
    *,
    fresh: bool = False,
) -> Iterator[Outcome]:
    """Clients that ask without a pause while the block runs.

    Args:
        port: of the service on this machine.
        clients: how many.
        make: gives the next request; called by all threads.
        fresh: a new connection for each request.
    """
    outcome, stop = Outcome(), threading.Event()
    threads = [
        threading.Thread(target=_ask, args=(port, make, stop, outcome, fresh))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield outcome
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _ask(
    port: int,
    make: Callable[[], bytes],
    stop: threading.Event,
    outcome: Outcome,
    fresh: bool,
) -> None:
    with contextlib.closing(Connection(port)) as connection:
        while not stop.is_set():
            begin = time.perf_counter()
            try:
                status, _ = connection.ask(make())
            except OSError as error:
                outcome.failures[type(error).__name__] += 1
                continue
            outcome.seconds.append(time.perf_counter() - begin)
            outcome.statuses[status] += 1
            if fresh:
                connection.close()
