"""What a report of each type means, and what is done before its recovery.

Spec: recovery §4 to §6.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from sqlalchemy.orm import Session

from masakari_ng.db import hosts
from masakari_ng.domain import Correction, Host, NotificationStatus, RecoveryMethod
from masakari_ng.recovery.evacuation import save_reserved
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)

_INSTANCE_FAILURES = frozenset(
    {
        ("LIFECYCLE", "STOPPED_FAILED"),
        ("IO_ERROR", "IO_ERROR_REPORT"),
        ("QEMU_GUEST_AGENT_ERROR", "STOPPED_FAILED"),
    }
)
"""`event` and `vir_domain_event`."""
_RECOVERED_PROCESS = "nova-compute"


class Driver(Protocol):
    """What an entry point in `masakari.driver` makes; names and arguments are upstream's."""

    def execute_host_failure(
        self,
        context: RecoveryContext,
        host_name: str,
        recovery_method: RecoveryMethod,
        notification_uuid: str,
        *,
        update_host_method: Callable[..., None] | None = None,
        reserved_host_list: Sequence[str] | None = None,
    ) -> None:
        """Move the instances of a failed host elsewhere."""

    def execute_instance_failure(
        self, context: RecoveryContext, instance_uuid: str, notification_uuid: str
    ) -> None:
        """Restart an instance."""

    def execute_process_failure(
        self,
        context: RecoveryContext,
        process_name: str,
        host_name: str,
        notification_uuid: str,
    ) -> None:
        """Take a host without a process out of service."""


class Failures:
    """One handler for each type of notification.

    Each gives the status of a normal end and raises `MasakariError`, or whatever the driver does,
    for all others.

    Args:
        driver: recovers.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def host(self, context: RecoveryContext, host: Host) -> NotificationStatus:
        """Recover if the report says that the host is down for certain."""
        uuid = context.notification.notification_uuid
        payload = context.notification.payload
        state = payload.get("host_status")
        if state is None:
            log.warning("Notification '%s' ignored as host_status is not provided.", uuid)
            return NotificationStatus.IGNORED
        if state.upper() != "NORMAL":
            log.warning("Notification '%s' ignored as host_status is '%s'", uuid, state.upper())
            return NotificationStatus.IGNORED
        return self._ending(context, host, self._host_stopped)

    def process(self, context: RecoveryContext, host: Host) -> NotificationStatus:
        """Recover if it is nova-compute that has stopped."""
        return self._ending(context, host, self._process_stopped)

    def instance(self, context: RecoveryContext, _host: Host) -> NotificationStatus:
        """Recover if the event is one of the three that mean a failure."""
        uuid = context.notification.notification_uuid
        payload = context.notification.payload
        if (payload.get("event"), payload.get("vir_domain_event")) not in _INSTANCE_FAILURES:
            log.info("Notification '%s' received with payload %s is ignored.", uuid, payload)
            return NotificationStatus.IGNORED
        self._driver.execute_instance_failure(context, payload["instance_uuid"], uuid)
        return NotificationStatus.FINISHED

    def _ending(
        self,
        context: RecoveryContext,
        host: Host,
        stopped: Callable[[RecoveryContext, Host], None],
    ) -> NotificationStatus:
        """What the event of a host or process leads to."""
        uuid = context.notification.notification_uuid
        match context.notification.payload.get("event", "").upper():
            case "STARTED":
                log.info("Notification '%s': started on host '%s'.", uuid, host.name)
                return NotificationStatus.FINISHED
            case "STOPPED":
                stopped(context, host)
                return NotificationStatus.FINISHED
            case event:
                log.warning("Notification '%s' ignored as its event is '%s'.", uuid, event)
                return NotificationStatus.IGNORED

    def _host_stopped(self, context: RecoveryContext, host: Host) -> None:
        uuid = context.notification.notification_uuid
        log.info("Notification '%s': Set host %s on maintenance.", uuid, host.name)
        saved, reserved = context.write(lambda session: _out_of_service(session, host))
        context.host_changed(saved)
        by_nova = host.segment.recovery_method is RecoveryMethod.AUTO
        self._driver.execute_host_failure(
            context,
            host.name,
            host.segment.recovery_method,
            uuid,
            update_host_method=None if by_nova else save_reserved,
            reserved_host_list=None if by_nova else reserved,
        )

    def _process_stopped(self, context: RecoveryContext, host: Host) -> None:
        uuid = context.notification.notification_uuid
        name = context.notification.payload["process_name"]
        recovered = name == _RECOVERED_PROCESS
        if recovered or Correction.PROCESS_MAINTENANCE not in context.corrections:
            context.host_changed(context.write(lambda session: _on_maintenance(session, host)))
        if not recovered:
            log.warning("Notification '%s': Skipping recovery for process: %s.", uuid, name)
            return
        self._driver.execute_process_failure(context, name, host.name, uuid)


def _on_maintenance(session: Session, host: Host) -> Host:
    return hosts.update(session, host.uuid, {"on_maintenance": True})


def _out_of_service(session: Session, host: Host) -> tuple[Host, list[str]]:
    """The failed host takes no instances, be it a reserved one; gives those that may."""
    saved = hosts.update(session, host.uuid, {"on_maintenance": True, "reserved": False})
    return saved, [found.name for found in hosts.reserved_in(session, host.segment.uuid)]
