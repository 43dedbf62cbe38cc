"""What moves leave when they end, or when nobody carries them on: locks, vmoves, journal."""

import functools
import logging
from datetime import datetime

from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import journal, vmoves
from masakari_ng.domain import JournalEntry, VMoveStatus
from masakari_ng.recovery.logs import About
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)

UNFINISHED = frozenset({VMoveStatus.PENDING, VMoveStatus.ONGOING})

_GIVEN_UP = "Failed reason: the recovery was given up."


def settle(context: RecoveryContext) -> None:
    """End whatever moves are left of a recovery that nobody will take up again.

    A lock that a user had set stays.

    Args:
        context: tools of that recovery.

    Raises:
        Interrupted: what has not been settled is left as it is, for whoever takes over.
    """
    uuid = context.notification.notification_uuid
    for entry in context.database.read(lambda session: journal.of_notification(session, uuid)):
        now = context.clock.utcnow().replace(microsecond=0)
        context.write(functools.partial(_give_up, entry, now))
        release(context, entry)


def release(context: RecoveryContext, entry: JournalEntry) -> None:
    """Unlock the instance, if it was a recovery that had locked it, and forget the move.

    A failed unlock is only logged: the move is over, and nobody comes back to it.

    Args:
        context: tools of its recovery.
        entry: journal of a move that is over.

    Raises:
        Interrupted: as `RecoveryContext.write`.
    """
    if entry.locked:
        context.verify()
        try:
            context.nova.unlock(entry.instance_uuid)
        except errors.CloudNotFound:
            pass  # Deleted meanwhile, and its lock with it.
        except errors.CloudError as error:
            about = About(log, entry.notification_uuid)
            text = "Failed to unlock instance %s after evacuation: %s"
            about.error(text, entry.instance_uuid, error)
    context.write(lambda session: journal.forget(session, entry.vmove_uuid))


def _give_up(entry: JournalEntry, now: datetime, session: Session) -> None:
    failed = {"status": VMoveStatus.FAILED, "message": _GIVEN_UP, "end_time": now}
    for vmove in vmoves.of_notification(session, entry.notification_uuid):
        if vmove.uuid == entry.vmove_uuid and vmove.status in UNFINISHED:
            vmoves.update(session, vmove.uuid, **failed)
