"""The server of the API: granian with one listening socket for all workers, and a manager told."""

import contextlib
import http.client
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from granian import net
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.server import Server
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.clock import SystemClock, wait_until
from masakari_ng.cmd import compose, readiness

log = logging.getLogger(__name__)

THREADS = 16
"""Requests at once in one worker; the pools of the database and of Nova hold as many."""

_BACKLOG = 1024
_HEADERS = 417_792
"""Bytes in which granian takes the head of a request, unless one line may be longer."""

_ENDLESS = 10 * 365 * 24 * 3600
_LOOK = 0.05

_LOGGING = {
    "handlers": {},
    "formatters": {},
    "loggers": {"_granian": {"level": "INFO", "handlers": [], "propagate": True}},
}
"""Granian's own handlers would pass by oslo.log."""


class ApiServer(Server):  # type: ignore[valid-type,misc]  # it depends on the interpreter
    """Serves until SIGTERM.

    With granian's own socket for each worker, connections that a worker has not yet accepted are
    lost with it; those that wait at a common one are served by the others.

    Args:
        conf: read by the process that watches the workers.
        check: raises what speaks against starting new workers now.

    Raises:
        ConfigurationError: an option cannot be used, or the port.
    """

    def __init__(self, conf: cfg.ConfigOpts, check: Callable[[], None], *, workers: int) -> None:
        self._check = check
        self._tls = _tls(conf)
        self._listener = _listening(conf)
        super().__init__(
            target=compose.API,
            address=str(self._listener.getsockname()[0]),
            port=conf.masakari_api_listen_port,
            interface=Interfaces.WSGI,
            workers=workers,
            blocking_threads=THREADS,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                keep_alive=conf.wsgi.keep_alive,
                header_read_timeout=1000 * (conf.wsgi.client_socket_timeout or _ENDLESS),
                max_buffer_size=max(_HEADERS, 2 * conf.wsgi.max_header_line),
            ),
            log_dictconfig=_LOGGING,
            respawn_failed_workers=True,
            workers_kill_timeout=conf.graceful_shutdown_timeout or None,
            **self._tls,
        )
        self.on_startup(self._tell_when_ready)

    def shutdown(self, exit_code: int = 0) -> None:
        """Let the requests under way end."""
        readiness.tell("STOPPING=1")
        super().shutdown(exit_code)

    def _init_shared_socket(self) -> None:
        self._ssp, self._sso = None, self._listener
        self._shd = cast("Any", net).SocketHolder(self._listener.fileno(), False, _BACKLOG)

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        """Replace the workers one by one, unless the new ones would not start."""
        readiness.tell_reload()
        try:
            self._check()
        except (cfg.Error, errors.ConfigurationError) as error:
            log.warning("The workers go on as they are; the new options cannot be used: %s", error)
            self.reload_signal = False
            self.main_loop_interrupt.clear()
        else:
            super()._reload(spawn_target, target_loader)
        readiness.tell("READY=1")

    def _tell_when_ready(self) -> None:
        log.info("masakari_api listening on %s:%s", self.bind_addr, self.bind_port)
        if readiness.wanted():
            threading.Thread(target=self._wait_and_tell, daemon=True).start()

    def _wait_and_tell(self) -> None:
        wait_until(self._answers, interval=_LOOK, timeout=0, clock=SystemClock())
        readiness.tell("READY=1")

    def _answers(self) -> bool:
        """Whether a worker does; the port is open before there is one."""
        address, port = self.bind_addr, self.bind_port
        connection = http.client.HTTPConnection(address, port, timeout=5)
        if self._tls:
            connection = http.client.HTTPSConnection(address, port, timeout=5, context=_trusting())
        with contextlib.closing(connection):
            try:
                connection.request("GET", "/healthcheck")
                connection.getresponse()
            except ssl.SSLError:
                return True  # a worker asks for a certificate that clients have
            except (OSError, http.client.HTTPException):
                return False
        return True


def _listening(conf: cfg.ConfigOpts) -> socket.socket:
    host, port = conf.masakari_api_listen, conf.masakari_api_listen_port
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as failing:
            listener = failing.enter_context(socket.socket(family, kind))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted connections inherit these.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, conf.wsgi.tcp_keepidle)
            listener.bind(address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            failing.pop_all()
            return listener
    except OSError as error:
        raise errors.ConfigurationError(f"Could not bind to {host}:{port}\n{error!r}") from error


def _tls(conf: cfg.ConfigOpts) -> dict[str, Any]:
    if not conf.use_ssl:
        return {}
    if not (conf.wsgi.ssl_cert_file and conf.wsgi.ssl_key_file):
        raise errors.ConfigurationError(
            "When running server in SSL mode, you must specify both a cert_file and key_file option"
            " value in your configuration file"
        )
    authority = conf.wsgi.ssl_ca_file
    for path in filter(None, (conf.wsgi.ssl_cert_file, conf.wsgi.ssl_key_file, authority)):
        if not os.access(path, os.R_OK):
            raise errors.ConfigurationError(f"{path} cannot be read")
    try:
        pair = conf.wsgi.ssl_cert_file, conf.wsgi.ssl_key_file
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*pair)
    except ssl.SSLError as error:
        raise errors.ConfigurationError(f"{pair[0]}, {pair[1]}: {error}") from error
    return {
        "ssl_cert": Path(conf.wsgi.ssl_cert_file),
        "ssl_key": Path(conf.wsgi.ssl_key_file),
        "ssl_ca": Path(authority) if authority else None,
        "ssl_client_verify": bool(authority),
        "ssl_protocol_min": SSLProtocols.tls12,
    }


def _trusting() -> ssl.SSLContext:
    """For ourselves only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
