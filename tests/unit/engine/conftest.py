"""A site with one segment and one host, and managers whose recoveries are made up by the test."""

import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from oslo_config import cfg
from sqlalchemy import text

from masakari_ng.db import claims, hosts, journal, notifications, segments, vmoves
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    Claim,
    Correction,
    Host,
    JournalEntry,
    Notification,
    NotificationStatus,
    NotificationType,
    RecoveryMethod,
    RequestContext,
    VMove,
)
from masakari_ng.engine.manager import Handler, Manager
from masakari_ng.recovery.reserved_host import HostLocks
from masakari_ng.recovery.task import RecoveryContext
from tests.simulated_clock import SimulatedClock

PATIENCE = 20.0
"""Seconds of real time for what other threads do."""

HOST_DOWN = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}


class Recovery:
    """Stands for the recovery of a host: waits until let go, then returns or raises.

    Attributes:
        contexts: of all recoveries begun so far.
    """

    def __init__(self, result: Any = NotificationStatus.FINISHED, *, held: bool = False) -> None:
        self.result = result
        self.contexts: list[RecoveryContext] = []
        self._begun = threading.Semaphore(0)
        self._go = threading.Event()
        if not held:
            self._go.set()

    def __call__(self, context: RecoveryContext, host: Host) -> NotificationStatus:
        self.contexts.append(context)
        self._begun.release()
        assert self._go.wait(PATIENCE)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def wait_begun(self) -> None:
        """Wait for one more recovery to begin."""
        assert self._begun.acquire(timeout=PATIENCE)

    def go(self) -> None:
        self._go.set()


class Site:
    """What a test does with the database and with managers on it.

    Attributes:
        tools: fields of each recovery's context that are to be others.
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database, clock: SimulatedClock) -> None:
        self.conf, self.database, self.clock = conf, database, clock
        self.corrections: frozenset[Correction] = frozenset()
        self.managers: list[Manager] = []
        self.tools: dict[str, Any] = {}
        self.segment = database.write(
            lambda session: segments.create(
                session, name="rack", service_type="compute", recovery_method=RecoveryMethod.AUTO
            )
        )
        self.host = self.add_host("compute-1")

    def add_host(self, name: str, **flags: bool) -> Host:
        return self.database.write(
            lambda session: hosts.create(
                session,
                segment_uuid=self.segment.uuid,
                name=name,
                type="COMPUTE",
                control_attributes="SSH",
                **flags,
            )
        )

    def report(
        self,
        status: NotificationStatus = NotificationStatus.NEW,
        *,
        host: str | None = None,
        age: float = 0.0,
        received: datetime | None = None,
        payload: Mapping[str, str] = HOST_DOWN,
        type: NotificationType = NotificationType.COMPUTE_HOST,
    ) -> Notification:
        """Store a notification, of the site's host unless the uuid of another one is given."""
        created = self.database.write(
            lambda session: notifications.create(
                session,
                type=type,
                generated_time=self.clock.utcnow() - timedelta(seconds=age),
                source_host_uuid=host or self.host.uuid,
                payload=payload,
                failover_segment_uuid=None,
            )
        )
        self.set_status(created, status)
        if received is not None:
            statement = text("UPDATE notifications SET created_at = :at WHERE id = :id")
            values = {"at": str(received), "id": created.id}
            self.database.write(lambda session: session.execute(statement, values))
        return replace(created, status=status)

    def set_status(self, notification: Notification, status: NotificationStatus) -> None:
        self.database.write(
            lambda session: notifications.change_status(
                session,
                notification.notification_uuid,
                expected=set(NotificationStatus),
                status=status,
            )
        )

    def row(self, notification: Notification) -> Notification:
        """The notification as it is stored now."""
        uuid = notification.notification_uuid
        return self.database.read(lambda session: notifications.by_uuid(session, uuid))

    def status(self, notification: Notification) -> NotificationStatus:
        return self.row(notification).status

    def held(self, engine: str = "engine-a") -> list[Claim]:
        return self.database.read(lambda session: claims.held(session, engine))

    def handed_over(self) -> list[Claim]:
        """Claims that nobody has held for years."""
        return self.database.read(lambda session: claims.stale(session, 1_000_000))

    def rename_table(self, name: str, new: str) -> None:
        """Let the database fail wherever the table is needed, or no longer."""
        statement = text(f"ALTER TABLE {name} RENAME TO {new}")
        self.database.write(lambda session: session.execute(statement))

    def take(self, notification: Notification, engine: str) -> Claim | None:
        return self.database.write(
            lambda session: claims.take(
                session, notification, engine, expected={NotificationStatus.NEW}
            )
        )

    def begin_move(self, notification: Notification) -> None:
        """What an engine leaves that dies after its first look at the instance."""
        uuid = self.plan_move(notification).uuid
        self.database.write(lambda session: journal.update(session, uuid, vm_state="active"))

    def plan_move(self, notification: Notification) -> VMove:
        return self.database.write(lambda session: _plan_move(session, notification))

    def journal(self, notification: Notification) -> list[JournalEntry]:
        uuid = notification.notification_uuid
        return self.database.read(lambda session: journal.of_notification(session, uuid))

    def vmoves(self, notification: Notification) -> list[VMove]:
        uuid = notification.notification_uuid
        return self.database.read(lambda session: vmoves.of_notification(session, uuid))

    def manager(
        self,
        handler: Handler,
        engine: str = "engine-a",
        *,
        threads: int = 4,
        database: Any = None,
        kinds: Collection[NotificationType] = (NotificationType.COMPUTE_HOST,),
        corrections: Collection[Correction] = (),
    ) -> Manager:
        """One that recovers hosts with `handler`, maybe on a database with quirks."""
        made = Manager(
            database or self.database,
            engine,
            dict.fromkeys(kinds, handler),
            self.recovery_context,
            threads=threads,
            corrections=corrections,
        )
        self.managers.append(made)
        return made

    def recovery_context(
        self, asked: RequestContext, claim: Claim, notification: Notification, resumed: bool
    ) -> RecoveryContext:
        """It has the request id in place of Nova."""
        context = RecoveryContext(
            conf=self.conf,
            nova=asked.nova_request_id,
            clock=self.clock,
            database=self.database,
            claim=claim,
            notification=notification,
            locks=HostLocks(),
            resumed=resumed,
            corrections=self.corrections,
        )
        return replace(context, **self.tools)

    def receive(
        self, manager: Manager, notification: Notification, request_id: str = "req-1"
    ) -> int:
        """Do as the bus with a call; gives how often it was acknowledged, once it has ended."""
        acknowledged: list[None] = []
        context = RequestContext(request_id=request_id)
        work = manager.process_notification(
            context, notification, lambda: acknowledged.append(None)
        )
        if work is not None:
            work.result(PATIENCE)
        return len(acknowledged)


@pytest.fixture
def site(conf: cfg.ConfigOpts, database: Database, clock: SimulatedClock) -> Iterator[Site]:
    made = Site(conf, database, clock)
    yield made
    for manager in made.managers:
        manager.close()


def _plan_move(session: Any, notification: Notification) -> VMove:
    vmove = vmoves.create(
        session,
        notification_uuid=notification.notification_uuid,
        instance_uuid="vm-1",
        instance_name="vm-1",
        source_host="compute-1",
    )
    journal.plan(session, vmove)
    return vmove
