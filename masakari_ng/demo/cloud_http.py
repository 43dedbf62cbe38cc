"""HTTP in front of the simulated cloud: one recorded frame for each request."""

import json
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from masakari_ng.demo.cloud_reply import Reply
from masakari_ng.demo.listener import ClosableServer

_RECORDED_HEADERS = (
    "User-Agent",
    "Accept",
    "Content-Type",
    "X-OpenStack-Nova-API-Version",
    "OpenStack-API-Version",
    "X-OpenStack-Request-ID",
    "X-Auth-Token",
    "X-Subject-Token",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """How to answer: after `delay` seconds with `reply`, or by dropping the connection."""

    reply: Reply
    delay: float = 0.0
    drop: bool = False


class CloudListener(ClosableServer):
    """Listens on loopback.

    Args:
        address: where; port 0 takes a free one.
        decide: gives the answer for a frame.
        pause: waits so many seconds, less when the cloud is stopped.
    """

    def __init__(
        self,
        address: tuple[str, int],
        decide: Callable[[dict[str, Any]], Answer],
        pause: Callable[[float], object],
    ) -> None:
        self.decide = decide
        self.pause = pause
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: CloudListener
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer on a kept connection waits 40 ms

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: frames are the record."""

    def _serve(self) -> None:
        frame = self._frame()
        answer = self.server.decide(frame)
        if answer.delay:
            self.server.pause(answer.delay)
        if answer.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._send(answer.reply, nova=frame["path"].startswith("/compute"))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815 - the library's names

    def _frame(self) -> dict[str, Any]:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        return {
            "method": self.command,
            "path": url.path,
            "query": parse_qsl(url.query, keep_blank_values=True),
            "raw_query": url.query,
            "body": _decoded(raw),
            "status": None,
            "headers": {name: self.headers.get(name) for name in _RECORDED_HEADERS},
        }

    def _send(self, reply: Reply, *, nova: bool) -> None:
        data = b"" if reply.body is None else json.dumps(reply.body).encode()
        request_id = f"req-{uuid.uuid4()}"
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-openstack-request-id", request_id)
        if nova:
            self.send_header("x-compute-request-id", request_id)
        self.end_headers()
        self.wfile.write(data)


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw.decode("latin1")
