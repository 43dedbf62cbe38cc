"""What moves leave when they end, or when nobody carries them on: locks, vmoves, journal."""

import functools
import logging
from collections.abc import Collection
from datetime import datetime

from sqlalchemy.orm import Session

from masakari_ng import errors, logs
from masakari_ng.db import journal, vmoves
from masakari_ng.domain import Correction, JournalEntry, VMoveStatus
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)

UNFINISHED = frozenset({VMoveStatus.PENDING, VMoveStatus.ONGOING})

_PAUSES = (1, 2, 4, 8, 15, 30)
"""Seconds before each repeat of a failed unlock: a minute in all."""
_GIVEN_UP = "Failed reason: the recovery was given up."


def settle(context: RecoveryContext) -> None:
    """End whatever moves are left of a recovery that nobody will take up again.

    A lock that a user had set stays; a failed unlock is repeated for a minute.

    Args:
        context: tools of that recovery.

    Raises:
        Interrupted: what has not been settled is left as it is, for whoever takes over.
    """
    uuid = context.notification.notification_uuid
    left = context.database.read(lambda session: journal.of_notification(session, uuid))
    now = context.clock.utcnow().replace(microsecond=0)
    for entry in left:
        context.write(functools.partial(_give_up, entry, now))
    _release(context, left, _PAUSES)


def release(context: RecoveryContext, entry: JournalEntry) -> None:
    """Unlock the instance, if it was a recovery that had locked it, and forget the move.

    A failed unlock is repeated for a minute after a takeover, or where that is corrected. Then it
    is only logged, and said in the vmove: the move is over, and nobody comes back to it.

    Args:
        context: tools of its recovery.
        entry: journal of a move that is over.

    Raises:
        Interrupted: as `RecoveryContext.write`.
    """
    again = context.resumed or Correction.RETRY_UNLOCK in context.corrections
    _release(context, [entry], _PAUSES if again else ())


def _release(
    context: RecoveryContext, entries: Collection[JournalEntry], pauses: Collection[float]
) -> None:
    failed: dict[JournalEntry, Exception | None] = dict.fromkeys(entries)
    for pause in (0, *pauses):
        if pause and failed:
            context.clock.sleep(pause)
        found = {entry: _unlocked(context, entry) for entry in failed}
        failed = {entry: error for entry, error in found.items() if error}
    for entry, error in failed.items():
        with logs.about(instance_uuid=entry.instance_uuid):
            text = "Failed to unlock instance %s after evacuation: %s"
            log.error(text, entry.instance_uuid, error)
        if pauses:
            context.write(functools.partial(_note, entry, f"The instance is still locked: {error}"))
        context.write(functools.partial(_forget, entry))


def _unlocked(context: RecoveryContext, entry: JournalEntry) -> Exception | None:
    """Unlock and forget; gives what was in the way."""
    if entry.locked:
        context.verify()
        try:
            context.nova.unlock(entry.instance_uuid)
        except errors.CloudNotFound:
            pass  # Deleted meanwhile, and its lock with it.
        except Exception as error:  # noqa: BLE001 - one among many, and it is logged in the end
            return error
    context.write(functools.partial(_forget, entry))
    return None


def _forget(entry: JournalEntry, session: Session) -> None:
    journal.forget(session, entry.vmove_uuid)


def _note(entry: JournalEntry, text: str, session: Session) -> None:
    """Add to the message of the vmove, unless an unnoticed commit has."""
    for vmove in vmoves.of_notification(session, entry.notification_uuid):
        message = vmove.message or ""
        if vmove.uuid == entry.vmove_uuid and text not in message:
            vmoves.update(session, vmove.uuid, message=f"{message} {text}".lstrip())


def _give_up(entry: JournalEntry, now: datetime, session: Session) -> None:
    failed = {"status": VMoveStatus.FAILED, "message": _GIVEN_UP, "end_time": now}
    for vmove in vmoves.of_notification(session, entry.notification_uuid):
        if vmove.uuid == entry.vmove_uuid and vmove.status in UNFINISHED:
            vmoves.update(session, vmove.uuid, **failed)
