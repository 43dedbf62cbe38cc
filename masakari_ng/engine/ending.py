"""The two ends of a recovery in the database, and what is cleared away at the second."""

import logging

from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import claims, journal, notifications
from masakari_ng.domain import Claim, Notification, NotificationStatus
from masakari_ng.engine import outcomes
from masakari_ng.engine.outcomes import Outcome
from masakari_ng.recovery import cleanup
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)


def settled(context: RecoveryContext, outcome: Outcome) -> Outcome:
    """Clear away what the recovery has left; it is to be taken up again if that is interrupted."""
    try:
        cleanup.settle(context)
    except errors.Interrupted as error:
        notification = context.notification
        return outcomes.of(error, notification.notification_uuid, notification.type)
    except Exception:  # It would not go better the next time, so the outcome stands.
        uuid = context.notification.notification_uuid
        log.exception("Notification '%s' may have left something behind", uuid)
    return outcome


def verified(session: Session, claim: Claim) -> tuple[Notification, bool]:
    """The notification, and whether a recovery of it has been begun and not brought to an end."""
    uuid = claim.notification_uuid
    claims.verify(session, claim)
    return notifications.by_uuid(session, uuid), bool(journal.of_notification(session, uuid))


def ended(
    session: Session,
    claim: Claim,
    status: NotificationStatus,
    message: str | None,
    *,
    retry: bool,
) -> NotificationStatus | None:
    """Give up the claim and store how it ended; None if somebody else has set a status.

    Run again after a commit that went unnoticed, it gives what is stored.
    """
    uuid = claim.notification_uuid
    if not claims.release(session, claim):
        return notifications.by_uuid(session, uuid).status
    begun = any(entry.vm_state for entry in journal.of_notification(session, uuid))
    if is_last(status, retry=retry) or not begun:
        journal.clear(session, uuid)  # Else the retry goes on with the moves.
    running, error = {NotificationStatus.RUNNING}, NotificationStatus.ERROR
    if not notifications.change_status(
        session, uuid, expected=running, status=status, message=message
    ):
        return None
    if status is not error or not retry:
        return status
    # In one transaction, so that no other engine sees the last retry's error as one to be retried.
    failed = NotificationStatus.FAILED
    notifications.change_status(session, uuid, expected={error}, status=failed)
    return failed


def is_last(status: NotificationStatus, *, retry: bool) -> bool:
    """Whether nobody recovers any more what ends so."""
    return retry or status is not NotificationStatus.ERROR
