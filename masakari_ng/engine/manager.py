"""One notification from its arrival to its outcome.

The right to work on it is a claim (`db/claims.py`), taken in the transaction that sets the status
to `running` and given up in the one that stores the outcome. A claim that must wait for its host or
for a thread occupies none and leaves the status as it was. Spec: recovery §2.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from sqlalchemy.orm import Session

from masakari_ng import errors, logs
from masakari_ng.db import claims, hosts, notifications
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    Claim,
    Correction,
    Host,
    Notification,
    NotificationStatus,
    NotificationType,
    RequestContext,
)
from masakari_ng.engine import ending, measures, outcomes
from masakari_ng.engine.outcomes import Outcome
from masakari_ng.engine.roster import Origin, Roster, own_origin
from masakari_ng.messaging.events import Events
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)

Handler = Callable[[RecoveryContext, Host], NotificationStatus]
"""Recovers; gives the status of a normal end, raises for all others."""

ContextFactory = Callable[[RequestContext, Claim, Notification, bool], RecoveryContext]
"""Makes what a recovery needs; the last argument says that it was begun before."""

_TOLD_AS_ERRORS = {NotificationStatus.ERROR, NotificationStatus.IGNORED}
_NOT_TOLD = (NotificationStatus.IGNORED, NotificationType.VM)
"""The end of a notification of which upstream says nothing."""

_DISABLED = "Recovery aboart: the segment HA is disabled."


class Manager:
    """Claims notifications and runs their recoveries.

    Args:
        database: with the claims.
        engine: identity of this process, unique over all engines and restarts.
        handlers: what to do, by type.
        context_for: makes the recovery's context.
        threads: recoveries that run at once; further claims wait, here or for an idle engine.
        events: told of the start and the end of each recovery.
        corrections: mistakes of upstream's that are not to be made.
    """

    def __init__(
        self,
        database: Database,
        engine: str,
        handlers: Mapping[NotificationType, Handler],
        context_for: ContextFactory,
        *,
        threads: int,
        events: Events | None = None,
        corrections: Collection[Correction] = (),
    ) -> None:
        self.engine = engine
        self._events = events or Events()
        self._database = database
        self._handlers = handlers
        self._context_for = context_for
        self._tells_exceptions = Correction.EVENT_FAULTS in corrections
        self._side_by_side = Correction.PARALLEL_INSTANCE_RECOVERY in corrections
        self._roster = Roster(threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="recovery")
        self._promoting = threading.Lock()
        self.draining = False

    def process_notification(
        self,
        context: RequestContext,
        notification: Notification,
        acknowledge: Callable[[], None],
    ) -> Future[None] | None:
        """Claim and recover in a thread of the pool, unless somebody else does or has to first.

        Args:
            context: of the request that reported the failure.
            notification: as it was reported.
            acknowledge: called once nothing of the message can be lost any more.

        Returns:
            For those who wait for the end of the recovery; None if none begins now.

        Raises:
            SegmentDisabled: it is ignored.
            DatabaseUnavailable: nothing is known of the notification here; the periodic task finds
                it.
            Stopped: the same, or another engine gets the message.
        """
        if self._disabled(notification):
            acknowledge()
            raise errors.SegmentDisabled(notification.notification_uuid, notification.type)
        claim = self._claim(notification, {NotificationStatus.NEW}, Origin(context))
        acknowledge()
        if claim is None:
            log.warning(
                "Processing of notification is skipped to avoid recovering from failure twice. "
                "Notification: '%s'",
                notification.notification_uuid,
            )
        elif claim.working:
            return self._pool.submit(self._work, claim)
        return None

    def retry(
        self,
        notification: Notification,
        context: RequestContext,
        *,
        last: bool = True,
        expired: bool = False,
    ) -> None:
        """Claim again what ended in `error`, or was lost, and recover in a thread of the pool.

        Where none is free, that is left to a later run.

        Args:
            notification: as just read; with another status by now it is left alone.
            context: of the periodic run.
            last: there is no other retry if this one fails.
            expired: recover nothing, only put in order what an earlier run has begun.
        """
        if self._roster.free() <= 0:
            return
        origin = Origin(context, retry=last, expired=expired)
        claim = self._claim(notification, {notification.status}, origin)
        measures.retried(notification, claim, expired=expired)
        if claim is not None and claim.working:
            self._pool.submit(self._work, claim)

    def resume(self, claim: Claim) -> None:
        """Go on with a claim of this engine that no thread of it works on.

        A waiting one joins those that `promote` looks at.
        """
        uuid = claim.notification_uuid
        self._roster.expect(uuid, own_origin())
        if claim.working and self._roster.begin(uuid):
            log.warning("Recovery of notification '%s' is taken up again.", uuid)
            self._pool.submit(self._work, claim, resumed=True)

    def promote(self) -> None:
        """Let claims work whose hosts have become free, as long as there are threads.

        Of each host the one that has waited longest comes first.
        """
        served = set()
        with self._promoting:
            for claim in self._waiting():
                host = claim.source_host_uuid
                if host in served or self._roster.free() <= 0:
                    continue
                promoted = self._promoted(claim)
                if promoted is not None:
                    self._pool.submit(self._work, promoted)
                    if not self._side_by_side:
                        served.add(host)

    def idle(self) -> bool:
        """Whether there is a thread for the work of other engines, once one's own has begun."""
        return not self.draining and self._roster.free() > 0

    def beat(self) -> None:
        """Renew the claims, compare the rows with what the threads do, repair the difference."""
        active, waiting = self._roster.active(), self._roster.waiting()
        held = self._database.write(self._beaten)
        rows = {claim.notification_uuid: claim for claim in held}
        still_active = active & self._roster.active()
        for lost in still_active - rows.keys():
            log.warning("Notification '%s' is worked on here and claimed no longer.", lost)
        for gone in set(waiting) - rows.keys():
            self._roster.leave(gone)
        for uuid in rows.keys() - active:
            self.resume(rows[uuid])

    def drain(self) -> None:
        """Begin nothing any more, and leave what waits to other engines; returns at once."""
        if self.draining:
            return
        self.draining = True
        # Not in the pool, where recoveries may occupy all threads.
        threading.Thread(target=self._leave, args=(claims.waiting,), daemon=True).start()

    def wait_idle(self, timeout: float) -> bool:
        """Wait until all recoveries have ended; False if some have not after `timeout` seconds."""
        return self._roster.wait_idle(timeout)

    def close(self) -> None:
        """Leave to other engines whatever is left; nothing of it can be written here any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._leave(claims.held)

    def _disabled(self, notification: Notification) -> bool:
        """Ignore a notification of a disabled segment; it never becomes `running`."""
        uuid = notification.notification_uuid
        try:
            host = self._host(notification)
        except errors.HostNotFound:
            return False  # It is claimed all the same, and ends with that as its reason.
        if host.segment.enabled:
            return False
        ignored = self._database.write(
            lambda session: notifications.change_status(
                session,
                uuid,
                expected={NotificationStatus.NEW},
                status=NotificationStatus.IGNORED,
                message=_DISABLED,
            )
        )
        if ignored:
            measures.changed(notification, NotificationStatus.IGNORED)
        return True

    def _claim(
        self, notification: Notification, expected: Collection[NotificationStatus], origin: Origin
    ) -> Claim | None:
        uuid = notification.notification_uuid
        if not self._roster.enter(uuid, origin):
            return None
        self._events.emit(origin.context, "notification.process.start", notification)
        claim, begin = None, self._roster.free() >= 0  # it is entered already
        try:
            claim = self._database.write(
                lambda session: claims.take(
                    session,
                    notification,
                    self.engine,
                    expected=expected,
                    begin=begin,
                    side_by_side=self._side_by_side,
                )
            )
        finally:
            if claim is None:
                self._roster.leave(uuid)
        measures.claimed(notification, claim)
        if claim is None or claim.working:
            return claim
        self._roster.wait(uuid)
        log.info("Notification '%s' waits for another recovery.", uuid)
        with self._promoting:
            # If that has ended just now, nobody has seen that this one waits.
            return self._promoted(claim) or claim

    def _waiting(self) -> list[Claim]:
        """Waiting claims in the order in which they came."""
        order = {uuid: place for place, uuid in enumerate(self._roster.waiting())}
        if not order or self.draining:
            return []
        found = self._database.read(claims.ready)
        mine = [claim for claim in found if claim.notification_uuid in order]
        return sorted(mine, key=lambda claim: order[claim.notification_uuid])

    def _promoted(self, claim: Claim) -> Claim | None:
        uuid = claim.notification_uuid
        if not self._roster.begin(uuid):
            return None
        promoted = None
        try:
            promoted = self._database.write(
                lambda session: claims.promote(session, claim, side_by_side=self._side_by_side)
            )
        finally:
            if promoted is None:
                self._roster.wait(uuid)
        return promoted

    def _work(self, claim: Claim, *, resumed: bool = False) -> None:
        """Recover, then let work what has waited here for the host or for a thread."""
        uuid = claim.notification_uuid
        asked = self._roster.origin(uuid).context
        with logs.about(
            request_id=asked.request_id,
            global_request_id=asked.global_request_id,
            user=asked.user_id,
            project=asked.project_id,
            notification_uuid=uuid,
        ):
            try:
                self._run(claim, resumed=resumed)
                self.promote()
            except errors.MasakariError as error:
                log.warning("Notification '%s' is left for later: %s", uuid, error)
            except Exception:  # The outermost edge of a worker thread.
                log.exception("Notification '%s' is left for later.", uuid)

    def _run(self, claim: Claim, *, resumed: bool) -> None:
        uuid = claim.notification_uuid
        try:
            outcome = self._attempt(claim, resumed=resumed)
            if outcome.status is not None:
                self._record(claim, outcome.status, outcome.message)
            elif outcome.handed_over:
                self._hand_over(claim)
        finally:
            self._roster.leave(uuid)

    def _attempt(self, claim: Claim, *, resumed: bool) -> Outcome:
        """Recover; what becomes of the notification is the result, however it ends."""
        if self.draining:
            return Outcome(None, handed_over=True)
        uuid, origin = claim.notification_uuid, self._roster.origin(claim.notification_uuid)
        try:
            notification, begun = self._database.write(
                lambda session: ending.verified(session, claim)
            )
            context = self._context_for(origin.context, claim, notification, resumed or begun)
        except Exception as error:  # noqa: BLE001 - each ends in a status, whatever it is
            return outcomes.of(error, uuid, NotificationType.COMPUTE_HOST)
        if notification.status is not NotificationStatus.RUNNING:
            return ending.settled(context, Outcome(notification.status))
        try:
            outcome = Outcome(self._recovered(context, expired=origin.expired), message="")
        except Exception as error:  # noqa: BLE001 - as above
            outcome = outcomes.of(error, uuid, notification.type, context.corrections)
        if outcome.status is not None and ending.is_last(outcome.status, retry=origin.retry):
            outcome = ending.settled(context, outcome)
        self._tell(notification, outcome)
        return outcome

    def _recovered(self, context: RecoveryContext, *, expired: bool) -> NotificationStatus:
        if expired:
            raise errors.RecoveryFailure("The notification is expired.")
        notification = context.notification
        host = self._host(notification)
        logs.note(instance_uuid=notification.payload.get("instance_uuid"))
        with measures.recovery(notification):
            return self._handlers[notification.type](context, host)

    def _tell(self, notification: Notification, outcome: Outcome) -> None:
        """The end of a recovery, before it is stored. Spec: recovery §13."""
        context, status = (
            self._roster.origin(notification.notification_uuid).context,
            outcome.status,
        )
        fault = outcome.error if self._tells_exceptions else outcome.reason
        if fault is not None and status in _TOLD_AS_ERRORS:
            self._events.emit(context, "notification.process.error", notification, fault)
        elif status is not None and (status, notification.type) != _NOT_TOLD:
            self._events.emit(context, "notification.process.end", notification)

    def _host(self, notification: Notification) -> Host:
        host = self._database.read(
            lambda session: hosts.by_uuid(session, notification.source_host_uuid)
        )
        logs.note(host=host.name)
        return host

    def _record(self, claim: Claim, status: NotificationStatus, message: str | None) -> None:
        uuid, retry = claim.notification_uuid, self._roster.origin(claim.notification_uuid).retry
        final = self._database.write(
            lambda session: ending.ended(session, claim, status, message, retry=retry)
        )
        log.info("Notification %s exits with status: %s.", uuid, status)
        measures.ended(self._database, uuid, final)
        if final is None:
            log.warning("Notification %s has got another status from elsewhere.", uuid)
        elif final is not status:
            log.error(
                "Periodic task 'process_unfinished_notifications': Notification %s exits with "
                "status: %s.",
                uuid,
                final,
            )

    def _hand_over(self, claim: Claim) -> None:
        self._database.write(lambda session: claims.hand_over(session, claim))
        log.info("Notification '%s' is left to the next engine.", claim.notification_uuid)

    def _leave(self, some: Callable[[Session, str], list[Claim]]) -> None:
        try:
            for claim in self._database.read(lambda session: some(session, self.engine)):
                self._hand_over(claim)
        except errors.MasakariError as error:
            log.warning("Claims are left to grow stale: %s", error)

    def _beaten(self, session: Session) -> list[Claim]:
        claims.beat(session, self.engine)
        return claims.held(session, self.engine)
