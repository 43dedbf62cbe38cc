"""The thread that keeps this engine's claims alive and takes over those of dead engines."""

import logging
import threading

from sqlalchemy.orm import Session

from masakari_ng import errors, logs, metrics
from masakari_ng.clock import Clock
from masakari_ng.db import claims
from masakari_ng.db.session import Database
from masakari_ng.domain import Claim
from masakari_ng.engine.manager import Manager

log = logging.getLogger(__name__)


class Takeover:
    """Beats, promotes and takes over, every `heartbeat` seconds.

    Args:
        manager: works on the claims.
        database: with the claims.
        clock: a stop of it ends the thread.
        heartbeat: seconds between two looks.
        timeout: seconds without a heartbeat after which an engine counts as dead.
    """

    def __init__(
        self,
        manager: Manager,
        database: Database,
        clock: Clock,
        *,
        heartbeat: float,
        timeout: float,
    ) -> None:
        self._manager = manager
        self._database = database
        self._clock = clock
        self._heartbeat = heartbeat
        self._timeout = timeout
        self._failing = False
        self._ready: set[Claim] = set()
        self._thread = threading.Thread(target=self._loop, name="takeover", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the claims are looked after."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin with a look at once: a restarted engine may have left claims behind."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the end of the thread, at most `timeout` seconds."""
        self._thread.join(timeout)

    def tick(self) -> None:
        """One look.

        Raises:
            DatabaseUnavailable: nothing, or not all of it, was done.
            Stopped: the same.
        """
        until = self._clock.monotonic() + self._heartbeat
        self._manager.beat()
        if self._manager.draining:
            return
        self._manager.promote()
        for claim in self._database.read(lambda session: claims.stale(session, self._timeout)):
            if self._manager.idle():
                with logs.about(notification_uuid=claim.notification_uuid):
                    self._take_over(claim, until)
        self._relieve()
        self._manager.promote()

    def _relieve(self) -> None:
        """Take claims that have waited here and there since the last look for want of a thread."""
        ready = set(self._database.read(claims.ready)) if self._manager.idle() else set()
        known = {claims.NOBODY, self._manager.engine}
        ready = {claim for claim in ready if claim.engine not in known}
        for claim in ready & self._ready:
            if self._manager.idle():
                with logs.about(notification_uuid=claim.notification_uuid):
                    self._take_waiting(claim)
        self._ready = ready

    def _take_waiting(self, claim: Claim) -> None:
        engine = self._manager.engine
        taken = self._database.write(lambda session: claims.take_waiting(session, claim, engine))
        if taken is not None:
            uuid = claim.notification_uuid
            metrics.TAKEN_OVER.count("waited")
            log.info("Notification '%s' waited for a thread of '%s'.", uuid, claim.engine)
            self._manager.resume(taken)
            self._manager.promote()

    def _take_over(self, claim: Claim, until: float) -> None:
        taken = self._database.write(lambda session: self._taken(session, claim, until))
        if taken is not None:
            metrics.TAKEN_OVER.count("stopped" if claim.engine == claims.NOBODY else "silent")
            log.warning(
                "Notification '%s' is taken over from engine '%s'.",
                claim.notification_uuid,
                claim.engine or "(stopped)",
            )
            self._manager.resume(taken)

    def _taken(self, session: Session, claim: Claim, until: float) -> Claim | None:
        # Where the database was away, be it in the middle of this, nobody could beat: the others
        # get time to do so first.
        if self._clock.monotonic() >= until:
            return None
        return claims.take_over(session, claim, self._manager.engine, self._timeout)

    def _loop(self) -> None:
        try:
            while True:
                self._look()
                self._clock.sleep(self._heartbeat)
        except errors.Stopped:
            return

    def _look(self) -> None:
        """Look, and outlive every failure; of a row of failures only the first is logged."""
        try:
            self.tick()
        except errors.Stopped:
            raise
        except Exception as error:  # The next look may succeed, and others depend on it.
            if not self._failing:
                unknown = not isinstance(error, errors.MasakariError)
                text = "The claims cannot be looked after; trying again and again: %s"
                log.log(logging.ERROR, text, error, exc_info=unknown)
            self._failing = True
        else:
            if self._failing:
                log.warning("The claims are looked after again.")
            self._failing = False
