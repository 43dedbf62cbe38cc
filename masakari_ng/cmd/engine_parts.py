"""Builds the engine's objects from its options and connects them.

Apart from `cmd/engine.py`, so that the demo can import it without patching anything.
"""

import functools
import logging
import os
import uuid
from typing import Protocol

from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.clock import Clock, SystemClock
from masakari_ng.compute.nova import Cloud
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    Claim,
    Host,
    Notification,
    NotificationStatus,
    NotificationType,
    RequestContext,
)
from masakari_ng.engine.host_failure import HostFailure
from masakari_ng.engine.manager import Handler, Manager
from masakari_ng.engine.periodic import Periodic
from masakari_ng.engine.service import Service
from masakari_ng.engine.takeover import Takeover
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.server import Server
from masakari_ng.recovery import host
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)

_DRIVER = "taskflow_driver"
_PATIENCE = 600.0
"""Seconds for which work is repeated while a database is away."""


class StoppableClock(Clock, Protocol):
    """A clock whose waits can be ended."""

    def stop(self) -> None:
        """End all waits, present and future, with `Stopped`."""


def build_engine(conf: cfg.ConfigOpts, clock: StoppableClock | None = None) -> Service:
    """The engine service; nothing is contacted before its start.

    Args:
        conf: options; some may change while it runs.
        clock: for all waits; None takes a system clock.

    Raises:
        ConfigurationError: an option cannot be used.
    """
    _check(conf)
    clock = clock or SystemClock()
    database = Database.from_conf(conf, patience=_PATIENCE, sleep=clock.sleep)
    flows = Database(
        conf.taskflow.connection, dict(conf.database), patience=_PATIENCE, sleep=clock.sleep
    )
    threads = conf.executor_thread_pool_size
    make_context = functools.partial(
        _context, conf=conf, clock=clock, database=database, cloud=Cloud(conf, threads=threads)
    )
    engine = f"{conf.host}:{os.getpid()}:{uuid.uuid4().hex}"
    manager = Manager(database, engine, _handlers(flows), make_context, threads=threads)
    return Service(
        Server(Broker(conf), manager, threads=threads, clock=clock),
        manager,
        Takeover(
            manager,
            database,
            clock,
            heartbeat=conf.masakari_ng.claim_heartbeat,
            timeout=conf.masakari_ng.claim_timeout,
        ),
        Periodic(conf, manager, database, clock) if conf.periodic_enable else None,
        databases=(database, flows),
        stop_waits=clock.stop,
        graceful_timeout=conf.graceful_shutdown_timeout,
    )


def _handlers(taskflow_database: Database) -> dict[NotificationType, Handler]:
    recover_host = functools.partial(host.recover, runner=FlowRunner(taskflow_database))
    return {
        NotificationType.COMPUTE_HOST: HostFailure(recover_host),
        NotificationType.VM: _unsupported,
        NotificationType.PROCESS: _unsupported,
    }


def _unsupported(context: RecoveryContext, _host: Host) -> NotificationStatus:
    kind = context.notification.type
    raise errors.UnsupportedRecovery(f"Recovery of type {kind} is not supported yet")


def _context(
    asked: RequestContext,
    claim: Claim,
    notification: Notification,
    resumed: bool,
    *,
    conf: cfg.ConfigOpts,
    clock: Clock,
    database: Database,
    cloud: Cloud,
) -> RecoveryContext:
    return RecoveryContext(
        conf=conf,
        nova=cloud.nova(asked.nova_request_id),
        clock=clock,
        database=database,
        claim=claim,
        notification=notification,
        resumed=resumed,
    )


def _check(conf: cfg.ConfigOpts) -> None:
    driver = conf.notification_driver
    if not driver:
        raise errors.ConfigurationError("Notification driver option required, but not specified")
    log.info("Loading masakari notification driver '%s'", driver)
    if driver != _DRIVER:
        log.warning("Could not load %s", driver)
        raise errors.ConfigurationError(
            f"No 'masakari.driver' driver found, looking for '{driver}'"
        )
    if not conf.taskflow.connection:
        raise errors.ConfigurationError(
            "[taskflow] connection should be configured to use this driver."
        )
    own = conf.masakari_ng
    if own.claim_timeout < 3 * own.claim_heartbeat:
        raise errors.ConfigurationError(
            "[masakari_ng] claim_timeout must be at least three times claim_heartbeat"
        )
