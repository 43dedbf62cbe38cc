"""What a report about a compute host means, and what is done before its instances move."""

import logging
from collections.abc import Callable

from masakari_ng.db import hosts
from masakari_ng.domain import Host, NotificationStatus
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)


class HostFailure:
    """Handler of COMPUTE_HOST notifications. Spec: recovery §6.

    Args:
        recover: moves the instances off the host; returns when that is done.
    """

    def __init__(self, recover: Callable[[RecoveryContext, Host], None]) -> None:
        self._recover = recover

    def __call__(self, context: RecoveryContext, host: Host) -> NotificationStatus:
        """Recover if the report says that the host is down for certain.

        Raises:
            MasakariError: whatever ends a recovery.
        """
        uuid = context.notification.notification_uuid
        payload = context.notification.payload
        state = payload.get("host_status")
        if state is None:
            log.warning("Notification '%s' ignored as host_status is not provided.", uuid)
            return NotificationStatus.IGNORED
        if state.upper() != "NORMAL":
            log.warning("Notification '%s' ignored as host_status is '%s'", uuid, state.upper())
            return NotificationStatus.IGNORED
        match payload.get("event", "").upper():
            case "STARTED":
                log.info("Notification '%s': host '%s' has started.", uuid, host.name)
                return NotificationStatus.FINISHED
            case "STOPPED":
                self._stopped(context, host)
                return NotificationStatus.FINISHED
            case event:
                log.warning("Notification '%s' ignored as its event is '%s'.", uuid, event)
                return NotificationStatus.IGNORED

    def _stopped(self, context: RecoveryContext, host: Host) -> None:
        log.info("Set host %s on maintenance.", host.name)
        flags = {"on_maintenance": True, "reserved": False}
        self._recover(
            context, context.write(lambda session: hosts.update(session, host.uuid, flags))
        )
