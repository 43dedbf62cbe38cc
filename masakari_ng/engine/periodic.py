"""The two periodic tasks: retry of failed and lost notifications, expiry of old ones.

Spec: recovery §3.
"""

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from oslo_config import cfg
from sqlalchemy.orm import Session

from masakari_ng import errors, logs
from masakari_ng.clock import Clock
from masakari_ng.db import claims, journal, notifications
from masakari_ng.db.session import Database
from masakari_ng.domain import UNFINISHED, Correction, Notification, NotificationStatus
from masakari_ng.engine import measures
from masakari_ng.engine.manager import Manager
from masakari_ng.engine.roster import own_origin

log = logging.getLogger(__name__)

_LONGEST_PAUSE = 60.0
_DEFAULT_SPACING = 60.0
_EARLY = 0.2
_JITTER = 0.05
_JITTER_FROM = 20.0
_RETRIED = frozenset({NotificationStatus.NEW, NotificationStatus.ERROR})


@dataclass(slots=True)
class Task:
    """One periodic task.

    Attributes:
        spacing: seconds between two runs.
        last: when it ran, or, before its first run, when the engine began.
    """

    name: str
    run: Callable[[], None]
    spacing: float
    last: float

    def wait(self, now: float) -> float:
        """Seconds until its next run; 0 if that is now."""
        left = self.last + self.spacing - now
        return left if left > _EARLY else 0.0

    def mark(self, now: float) -> None:
        """It runs now; the runs keep to multiples of the spacing, save for some jitter."""
        jitter = _JITTER * self.spacing if self.spacing >= _JITTER_FROM else 0.0
        late = (now - self.last) % self.spacing
        self.last = now - late + random.uniform(0.0, jitter)  # noqa: S311 - no secret


class Periodic:
    """Runs both tasks in one thread of its own.

    Args:
        conf: options of the engine, some of them mutable.
        manager: claims and recovers; once it drains, nothing is begun any more.
        database: with notifications and claims.
        clock: a stop of it ends the thread.
        corrections: mistakes of upstream's that are not to be made.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        manager: Manager,
        database: Database,
        clock: Clock,
        corrections: frozenset[Correction] = frozenset(),
    ) -> None:
        self._conf = conf
        self._manager = manager
        self._database = database
        self._clock = clock
        self._corrections = corrections
        self._tasks = [
            Task(name, run, spacing or _DEFAULT_SPACING, clock.monotonic())
            for name, run, spacing in (
                (
                    "_process_unfinished_notifications",
                    self.retry_unfinished,
                    conf.process_unfinished_notifications_interval,
                ),
                (
                    "_check_expired_notifications",
                    self.expire,
                    conf.check_expired_notifications_interval,
                ),
            )
            if spacing >= 0
        ]
        self._thread = threading.Thread(target=self._loop, name="periodic", daemon=True)

    def start(self) -> None:
        """Begin, after the random delay of `periodic_fuzzy_delay`."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the end of the thread, at most `timeout` seconds."""
        self._thread.join(timeout)

    def look(self) -> float:
        """Run what is due.

        Returns:
            Seconds until the next look.

        Raises:
            Stopped: the process has been asked to end.
        """
        pauses = [_LONGEST_PAUSE]
        if self._conf.periodic_interval_max > 0:
            pauses.append(self._conf.periodic_interval_max)
        for task in self._tasks:
            if not task.wait(self._clock.monotonic()):
                task.mark(self._clock.monotonic())
                self._run(task)
            pauses.append(min(task.spacing, task.wait(self._clock.monotonic())))
        return min(pauses)

    def retry_unfinished(self) -> None:
        """Retry what ended in `error`, and what is `new` for so long that it must be lost.

        The recoveries run in the manager's threads: a slow one holds up no other host.
        """
        limit = timedelta(seconds=self._conf.retry_notification_new_status_interval)
        lost = self._clock.utcnow() - limit
        context = own_origin().context
        for found in self._database.read(
            lambda session: notifications.unfinished(session, _RETRIED)
        ):
            if self._manager.draining:
                return
            failed = found.status is NotificationStatus.ERROR
            if failed or self._received(found) < lost:
                last = failed or Correction.RETRY_LOST_NOTIFICATIONS not in self._corrections
                try:
                    with logs.about(notification_uuid=found.notification_uuid):
                        self._manager.retry(found, context, last=last)
                except errors.Stopped:
                    raise
                except Exception as error:  # The others get their retry all the same.
                    unknown = not isinstance(error, errors.MasakariError)
                    text = "Retry of notification '%s' failed: %s"
                    log.log(logging.ERROR, text, found.notification_uuid, error, exc_info=unknown)

    def expire(self) -> None:
        """Give up what is too old, unless a live engine has a claim on it."""
        limit = timedelta(seconds=self._conf.notifications_expired_interval)
        oldest = self._clock.utcnow() - limit
        timeout = self._conf.masakari_ng.claim_timeout
        rows = self._database.read(lambda session: notifications.unfinished(session, UNFINISHED))
        # After the rows: whatever runs in them was claimed before they were read.
        claimed = self._database.read(lambda session: claims.live(session, timeout))
        for found in rows:
            if self._received(found) < oldest and found.notification_uuid not in claimed:
                with logs.about(notification_uuid=found.notification_uuid):
                    self._expire(found)

    def _received(self, notification: Notification) -> datetime:
        """What its age is counted from; the clock of the monitor may be wrong."""
        if Correction.EXPIRY_BY_RECEIPT in self._corrections and notification.created_at:
            return notification.created_at
        return notification.generated_time

    def _expire(self, notification: Notification) -> None:
        uuid = notification.notification_uuid
        given_up, begun = self._database.write(lambda session: _given_up(session, notification))
        if given_up:
            measures.changed(notification, NotificationStatus.FAILED)
            log.error(
                "Periodic task 'check_expired_notifications': Notification %s is expired.", uuid
            )
        elif begun and not self._manager.draining:
            self._manager.retry(notification, own_origin().context, expired=True)

    def _run(self, task: Task) -> None:
        try:
            task.run()
        except errors.Stopped:
            raise
        except Exception as error:  # It ends this run of this task only.
            unknown = not isinstance(error, errors.MasakariError)
            text = "Error during MasakariManager.%s: %s"
            log.log(logging.ERROR, text, task.name, error, exc_info=unknown)

    def _loop(self) -> None:
        try:
            if self._conf.periodic_fuzzy_delay > 0:
                self._clock.sleep(random.uniform(0, self._conf.periodic_fuzzy_delay))  # noqa: S311
            while not self._manager.draining:
                self._clock.sleep(self.look())
        except errors.Stopped:
            return


def _given_up(session: Session, notification: Notification) -> tuple[bool, bool]:
    """Whether it is `failed` now, and whether its recovery has left something to put in order."""
    uuid, failed = notification.notification_uuid, NotificationStatus.FAILED
    if notification.status is NotificationStatus.ERROR and journal.of_notification(session, uuid):
        return False, True
    expected = {notification.status}
    return notifications.change_status(session, uuid, expected=expected, status=failed), False
