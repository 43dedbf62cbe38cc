"""Threaded HTTP servers on loopback that leave no thread behind."""

import socket
import threading
from http.server import ThreadingHTTPServer
from typing import Any

_PATIENCE = 5.0
"""Seconds that a thread gets to end once its connection is closed."""


class ClosableServer(ThreadingHTTPServer):
    """One thread for each connection; `end` closes them all and waits for the threads.

    The server of the standard library waits for clients that keep their connection open, or else
    leaves their threads running.
    """

    request_queue_size = 128

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._open: dict[socket.socket, threading.Thread] = {}
        self._guard = threading.Lock()
        self._serving: threading.Thread | None = None
        super().__init__(*arguments, **options)

    def begin(self, name: str) -> None:
        """Serve in a thread of this name."""
        self._serving = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, name=name, daemon=True
        )
        self._serving.start()

    def end(self) -> None:
        """Stop accepting, close every connection, wait for the threads."""
        if self._serving:
            self.shutdown()
            self._serving.join(_PATIENCE)
        self.server_close()
        with self._guard:
            left = dict(self._open)
        for connection in left:
            _shut(connection)
        for thread in left.values():
            thread.join(_PATIENCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        with self._guard:
            self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side, or its thread, was faster
