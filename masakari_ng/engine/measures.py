"""What an engine counts of its notifications."""

import contextlib
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

from masakari_ng import errors, metrics
from masakari_ng.db import notifications
from masakari_ng.db.session import Database
from masakari_ng.domain import Claim, Notification, NotificationStatus

log = logging.getLogger(__name__)


def claimed(notification: Notification, claim: Claim | None) -> None:
    """An engine has accepted it; of a retry the time would say nothing."""
    if claim is not None and notification.status is NotificationStatus.NEW:
        since_report(notification, "claimed")


def retried(notification: Notification, claim: Claim | None, *, expired: bool) -> None:
    """The periodic task has taken it up, and not only to put it in order."""
    if claim is not None and not expired:
        metrics.RETRIES.count(notification.type, notification.status)


@contextlib.contextmanager
def recovery(notification: Notification) -> Iterator[None]:
    """Around a recovery, which raises unless it ends well."""
    with metrics.RECOVERIES.during(notification.type):
        yield
    since_report(notification, "recovered")


def ended(database: Database, uuid: str, status: NotificationStatus | None) -> None:
    """Its outcome is stored; None: somebody else's is."""
    if status is None or not metrics.NOTIFICATIONS.active:
        return
    try:
        notification = database.read(lambda session: notifications.by_uuid(session, uuid))
    except errors.MasakariError as error:
        log.debug("Notification '%s' is not counted: %s", uuid, error)
    else:
        changed(notification, status)


def changed(notification: Notification, status: NotificationStatus) -> None:
    """It has this status now."""
    segment = notification.failover_segment_uuid or ""
    metrics.NOTIFICATIONS.count(notification.type, status, segment)


def since_report(notification: Notification, until: str) -> None:
    """Its recovery has got so far."""
    if notification.created_at is not None:
        now = datetime.now(UTC).replace(tzinfo=None)
        seconds = (now - notification.created_at).total_seconds()
        metrics.SINCE_REPORT.observe(seconds, notification.type, until)
