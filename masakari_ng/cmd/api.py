"""`masakari-ng-api`: the API service in worker processes. Spec: cli, masakari-api."""

import functools
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.server import Server
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.cmd import compose, paste

log = logging.getLogger(__name__)

_THREADS = 16
"""Requests at once in one worker; the pools of the database and of Nova hold as many."""

_ACCESS = '%(addr)s "%(method)s %(path)r %(protocol)s" status: %(status)d time: %(dt_ms).3f ms'
"""The path is quoted, so that nobody can forge a line."""

_GRANIAN_LOGGING = {
    "handlers": {},
    "formatters": {},
    "loggers": {
        name: {"level": "INFO", "handlers": [], "propagate": True}
        for name in ("_granian", "granian.access")
    },
}
"""Granian's own handlers would pass by oslo.log."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, which lets the requests under way end.

    Args:
        arguments: command line without the program; None takes the process' own.

    Returns:
        The exit code: 0 after SIGTERM, 1 when it cannot start.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        conf = compose.load(given)
        server = _server(conf)
        # Only to find out now what would end every worker.
        compose.build_api(conf).close()
    except (cfg.Error, errors.ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 1
    paste.warn(conf)
    if conf.notification_delay_max and not conf.coordination.backend_url:
        log.info("notification_delay_max is not used: the database tells equal reports apart")
    server.on_startup(
        functools.partial(
            log.info,
            "masakari_api listening on %s:%s",
            conf.masakari_api_listen,
            conf.masakari_api_listen_port,
        )
    )
    # Each worker reads the files anew, so SIGHUP takes changes over.
    server.serve(target_loader=functools.partial(compose.application, given), wrap_loader=False)
    return 0


def _server(conf: cfg.ConfigOpts) -> Any:
    return Server(
        target=compose.API,
        address=_free_address(conf.masakari_api_listen, conf.masakari_api_listen_port),
        port=conf.masakari_api_listen_port,
        interface=Interfaces.WSGI,
        workers=_workers(conf),
        blocking_threads=_THREADS,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(keep_alive=conf.wsgi.keep_alive),
        log_dictconfig=_GRANIAN_LOGGING,
        log_access=True,
        log_access_format=_ACCESS,
        respawn_failed_workers=True,
        workers_kill_timeout=conf.graceful_shutdown_timeout or None,
        **_tls(conf),
    )


def _workers(conf: cfg.ConfigOpts) -> int:
    workers: int = conf.masakari_api_workers or os.cpu_count() or 1
    if workers < 1:
        raise errors.ConfigurationError(
            f"masakari_api_workers value of {workers} is invalid, must be greater than 0"
        )
    return workers


def _free_address(host: str, port: int) -> str:
    """The numeric address of `host`, on which nobody listens.

    Granian's sockets share their port, so it would start beside another service unnoticed.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise errors.ConfigurationError(f"Could not bind to {host}:{port}\n{error!r}") from error
    return str(address[0])


def _tls(conf: cfg.ConfigOpts) -> dict[str, Any]:
    if not conf.use_ssl:
        return {}
    if not (conf.wsgi.ssl_cert_file and conf.wsgi.ssl_key_file):
        raise errors.ConfigurationError(
            "When running server in SSL mode, you must specify both a cert_file and key_file option"
            " value in your configuration file"
        )
    authority = conf.wsgi.ssl_ca_file
    for path in (conf.wsgi.ssl_cert_file, conf.wsgi.ssl_key_file, authority):
        if path and not os.access(path, os.R_OK):
            raise errors.ConfigurationError(f"{path} cannot be read")
    return {
        "ssl_cert": Path(conf.wsgi.ssl_cert_file),
        "ssl_key": Path(conf.wsgi.ssl_key_file),
        "ssl_ca": Path(authority) if authority else None,
        "ssl_client_verify": bool(authority),
        "ssl_protocol_min": SSLProtocols.tls12,
    }


if __name__ == "__main__":
    sys.exit(main())
