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
from masakari_ng.cmd import drivers, measuring
from masakari_ng.compute.nova import Cloud
from masakari_ng.conf import own
from masakari_ng.db.session import Database
from masakari_ng.domain import Claim, Host, Notification, NotificationType, RequestContext
from masakari_ng.engine.details import WorkflowDetails
from masakari_ng.engine.failures import Driver, Failures
from masakari_ng.engine.manager import Handler, Manager
from masakari_ng.engine.periodic import Periodic
from masakari_ng.engine.service import Service
from masakari_ng.engine.takeover import Takeover
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.events import Events
from masakari_ng.messaging.server import Server
from masakari_ng.recovery.driver import TaskFlowDriver
from masakari_ng.recovery.reserved_host import HostLocks
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)

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
    check(conf)
    clock = clock or SystemClock()
    database = Database.from_conf(conf, patience=_PATIENCE, sleep=clock.sleep)
    flows = Database(
        conf.taskflow.connection, dict(conf.database), patience=_PATIENCE, sleep=clock.sleep
    )
    events = Events.from_conf(conf)
    manager = _manager(conf, clock, database, flows, events)
    return Service(
        Server(
            Broker(conf),
            manager,
            threads=conf.executor_thread_pool_size,
            clock=clock,
            details=WorkflowDetails(database, flows),
            ping=conf.rpc_ping_enabled,
        ),
        manager,
        Takeover(
            manager,
            database,
            clock,
            heartbeat=conf.masakari_ng.claim_heartbeat,
            timeout=conf.masakari_ng.claim_timeout,
        ),
        Periodic(conf, manager, database, clock, own.corrections(conf))
        if conf.periodic_enable
        else None,
        closing=(events, database, flows),
        stop_waits=clock.stop,
        graceful_timeout=conf.graceful_shutdown_timeout,
    )


def _manager(
    conf: cfg.ConfigOpts, clock: Clock, database: Database, flows: Database, events: Events
) -> Manager:
    threads = conf.executor_thread_pool_size
    make_context = functools.partial(
        _context,
        conf=conf,
        clock=clock,
        database=database,
        cloud=Cloud(conf, threads=threads * conf.host_failure_recovery_threads),
        locks=HostLocks(),
        events=events,
    )
    return Manager(
        database,
        f"{conf.host}:{os.getpid()}:{uuid.uuid4().hex}",
        _handlers(_driver(conf.notification_driver, flows)),
        make_context,
        threads=threads,
        events=events,
        corrections=own.corrections(conf),
    )


def _handlers(driver: Driver) -> dict[NotificationType, Handler]:
    failures = Failures(driver)
    return {
        NotificationType.COMPUTE_HOST: failures.host,
        NotificationType.VM: failures.instance,
        NotificationType.PROCESS: failures.process,
    }


def _driver(name: str, taskflow_database: Database) -> Driver:
    kind = drivers.find(name)
    ours = issubclass(kind, TaskFlowDriver)
    driver: Driver = kind(FlowRunner(taskflow_database)) if ours else kind()
    return driver


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
    locks: HostLocks,
    events: Events,
) -> RecoveryContext:
    return RecoveryContext(
        conf=conf,
        nova=measuring.first_request(cloud.nova(asked.nova_request_id), notification),
        clock=clock,
        database=database,
        claim=claim,
        notification=notification,
        locks=locks,
        resumed=resumed,
        host_changed=functools.partial(_tell_changed, events, asked),
        corrections=own.corrections(conf),
    )


def _tell_changed(events: Events, asked: RequestContext, host: Host) -> None:
    with events.around(asked, "host.update") as about:
        about(host)


def check(conf: cfg.ConfigOpts) -> None:
    """Find out what would keep an engine from starting.

    Raises:
        ConfigurationError: an option cannot be used.
    """
    if not conf.taskflow.connection:
        raise errors.ConfigurationError(
            "[taskflow] connection should be configured to use this driver."
        )
    info = conf.nova_catalog_admin_info
    if info.count(":") != 2:  # noqa: PLR2004 - between type, name and interface
        raise errors.ConfigurationError(
            f"nova_catalog_admin_info must be <type>:<name>:<interface>, not '{info}'"
        )
    own = conf.masakari_ng
    if own.claim_timeout < 3 * own.claim_heartbeat:
        raise errors.ConfigurationError(
            "[masakari_ng] claim_timeout must be at least three times claim_heartbeat"
        )
