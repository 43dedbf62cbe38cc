"""`masakari-ng-engine`: the engine service in one process. Spec: cli, masakari-engine.

It runs on eventlet's green threads, as upstream does, unless `--threads` asks for native ones. What
is imported first decides which, so the command line is looked at before it is parsed.
"""

import sys

if "--threads" not in sys.argv:
    import eventlet

    eventlet.monkey_patch()

import logging
import os
import signal
import tempfile
import threading
import time
from typing import NoReturn

from oslo_config import cfg
from oslo_log import log as oslo_log

from masakari_ng import conf as options
from masakari_ng import errors, logs
from masakari_ng.clock import SystemClock
from masakari_ng.cmd import measuring, readiness
from masakari_ng.cmd.engine_parts import build_engine
from masakari_ng.cmd.signals import Signals
from masakari_ng.engine.service import BEYOND_GRACE, Service

log = logging.getLogger(__name__)

_PROGRAM = "masakari-ng-engine"
_THREADS = cfg.BoolOpt("threads", default=False, help="Native threads instead of green ones.")
_STOPPED = 0  # no signal has this number
_TICK = 1.0


def main() -> NoReturn:
    """Work until SIGTERM; the exit code is 0 then, and 1 if it cannot start or has to break off."""
    try:
        conf = options.load(program=_PROGRAM, subcommands=[_THREADS])
    except cfg.Error as error:
        sys.exit(str(error))
    oslo_log.setup(conf, options.PROJECT, options.version())
    logs.begin()
    clock = SystemClock()
    try:
        service = build_engine(conf, clock)
        log.info("Starting %s (version %s)", conf.masakari_topic, options.version())
        options.announce(conf)
        _check_tempdir(conf.tempdir)
        measuring.measure_engine(conf)
    except (errors.ConfigurationError, cfg.Error, ValueError) as error:
        log.error("%s", error)  # noqa: TRY400 - what is wrong is said, where does not matter
        sys.exit(1)
    signals = Signals([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    service.start()
    code = _supervise(service, signals, conf)
    logging.shutdown()
    # Threads may still hang in a request to Nova; their claims belong to other engines by now.
    os._exit(code)


def _supervise(service: Service, signals: Signals, conf: cfg.ConfigOpts) -> int:
    """Obey signals until the service has stopped, and say how it does; gives the exit code."""
    report, end = readiness.Report(service), None
    while (number := signals.next(_TICK)) != _STOPPED:
        report.tick(stopping=end is not None)
        if number is None:
            if end is not None and time.monotonic() >= end:
                log.error("Graceful shutdown timeout exceeded, instantaneous exiting")
                return 1
        elif number == signal.SIGHUP:
            with report.reloading():
                _reload(conf)
        elif number != signal.SIGTERM:
            log.info("Caught %s signal, instantaneous exiting", signal.Signals(number).name)
            return 1
        elif end is None:
            log.info("Caught SIGTERM, stopping")
            readiness.tell("STOPPING=1")
            end = time.monotonic() + conf.graceful_shutdown_timeout + BEYOND_GRACE
            threading.Thread(target=_stop, args=(service, signals), daemon=True).start()
    log.info("Stopped")
    return 0


def _stop(service: Service, signals: Signals) -> None:
    try:
        service.stop()
    except Exception:  # The process ends all the same; its claims will grow stale.
        log.exception("Error while stopping")
    signals.push(_STOPPED)


def _reload(conf: cfg.ConfigOpts) -> None:
    log.info("Caught SIGHUP, handling")
    try:
        conf.mutate_config_files()
    except (cfg.Error, ValueError):
        log.exception("The configuration stays as it is")


def _check_tempdir(folder: str | None) -> None:
    try:
        with tempfile.TemporaryDirectory(dir=folder):
            pass
    except OSError as error:
        raise errors.ConfigurationError(f"Temporary directory is invalid: {error}") from error


if __name__ == "__main__":
    main()
