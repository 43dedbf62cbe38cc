"""`masakari-ng-api`: the API service in worker processes. Spec: cli, masakari-api."""

import contextlib
import ctypes
import functools
import gc
import multiprocessing
import os
import sys
from collections.abc import Sequence

from oslo_config import cfg

from masakari_ng import conf as options
from masakari_ng import errors
from masakari_ng.cmd import compose, measuring, paste
from masakari_ng.cmd.access_log import AccessLog
from masakari_ng.cmd.api_server import THREADS, ApiServer

_ARENA_MAX = -8
"""Of glibc's malloc.h."""


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
        _check(given)
        server = ApiServer(conf, functools.partial(_check, given), workers=_workers(conf))
        options.announce(conf, paste.without_effect(conf))
        measuring.measure_workers(conf)
    except (cfg.Error, errors.ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 1
    # The workers share what is imported by now, and the listening socket.
    multiprocessing.set_start_method("fork", force=True)
    gc.freeze()
    with contextlib.suppress(AttributeError):  # not glibc
        # It would keep eight times the memory of the largest answer for each processor.
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)
    server.serve(target_loader=functools.partial(_application, given), wrap_loader=False)
    return 0


def _application(given: Sequence[str]) -> AccessLog:
    """What a worker serves; it reads the files anew, so SIGHUP takes changes over."""
    conf = compose.load(given)
    # A connection above the size of the pool is closed after its transaction.
    conf.set_default("max_pool_size", THREADS, "database")
    return AccessLog(compose.build_api(conf), conf.wsgi.wsgi_log_format)


def _check(given: Sequence[str]) -> None:
    """Find out what would end every worker."""
    conf = compose.load(given)
    with contextlib.closing(compose.build_api(conf)) as app:
        AccessLog(app, conf.wsgi.wsgi_log_format)


def _workers(conf: cfg.ConfigOpts) -> int:
    workers: int = conf.masakari_api_workers or os.cpu_count() or 1
    if workers < 1:
        raise errors.ConfigurationError(
            f"masakari_api_workers value of {workers} is invalid, must be greater than 0"
        )
    return workers


if __name__ == "__main__":
    sys.exit(main())
