"""The move of one instance. Spec: recovery §7.4."""

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy.orm import Session

from masakari_ng import errors, metrics
from masakari_ng.clock import wait_until
from masakari_ng.compute.nova import Server
from masakari_ng.db import journal, vmoves
from masakari_ng.domain import Correction, JournalEntry, VMove, VMoveStatus
from masakari_ng.recovery.cleanup import UNFINISHED, release
from masakari_ng.recovery.task import RecoveryContext

log = logging.getLogger(__name__)

_SHUT_DOWN = 4  # power_state
_MOVING = "rebuild"  # so begin Nova's task states of an evacuation
_UNWRITTEN = {
    "status": VMoveStatus.FAILED,
    "message": "Failed reason: the outcome could not be stored.",
}
_DELETED = "Nova knows the instance no longer."
_STATE_LOST = "The evacuation worked, what follows it did not. {}"
# Upstream's texts, whatever Nova's reason.
_STOP_REFUSED = "cannot access local variable 'timer' where it is not associated with a value"
_REFUSED: dict[type[Exception], str] = {
    errors.CloudUnreachable: "An unknown exception occurred.",
    errors.CloudNotFound: "Resource could not be found.",
    errors.CloudConflict: "Conflict",
}


class InstanceMove:
    """One instance, from the first look to the unlock.

    Before each act the journal says what will be done, so that another engine can go on from there
    if this one dies: at most one evacuation is sent, unless nobody can know whether it was, and
    then Nova refuses the second one.

    Args:
        context: tools of this recovery.
        vmove: the move; `ongoing` only when a dead engine had begun it.
        entry: its journal.
    """

    def __init__(self, context: RecoveryContext, vmove: VMove, entry: JournalEntry) -> None:
        self._context = context
        self._nova = context.nova
        self._vmove = vmove
        self._uuid = vmove.instance_uuid
        self._entry = entry
        # By a dead engine, or in an earlier workflow of this attempt.
        self._begun_elsewhere = vmove.status is VMoveStatus.ONGOING
        self._real_texts = Correction.ERROR_TEXTS in context.corrections
        self._stop_refused = False
        self._arrived_at: str | None = None

    def run(self) -> None:
        """Move the instance; a failure is written down, not raised.

        Raises:
            Interrupted: the move is left as it is, for whoever takes over.
        """
        if self._vmove.status in UNFINISHED and not self._stored(self._outcome()):
            self._stored(_UNWRITTEN)
        release(self._context, self._entry)

    def _outcome(self) -> dict[str, object]:
        try:
            server = self._moved()
        except errors.Interrupted:
            raise
        except errors.WaitTimeout:
            log.warning("Time is up")
            return self._failed("Failed reason: timeout.")
        except Exception as error:  # One among many: the others go on.
            if isinstance(error, errors.CloudNotFound) and self._is_deleted():
                return {"status": VMoveStatus.IGNORED, "message": _DELETED}
            unknown = not isinstance(error, errors.MasakariError)
            log.warning("Instance was not evacuated: %s", error, exc_info=unknown)
            return self._failed(self._text(error))
        before, now = self._entry.vm_state, server.vm_state
        changed = self._real_texts and now != before
        return {
            "status": VMoveStatus.SUCCEEDED,
            "dest_host": self._place(server),
            "message": f"The instance was {before}, now it is {now}." if changed else None,
        }

    def _failed(self, reason: str) -> dict[str, object]:
        failed: dict[str, object] = {"status": VMoveStatus.FAILED, "message": reason}
        if self._real_texts and self._arrived_at:
            failed |= {"dest_host": self._arrived_at, "message": _STATE_LOST.format(reason)}
        return failed

    def _text(self, error: Exception) -> str:
        if self._real_texts:
            return str(error)
        return _STOP_REFUSED if self._stop_refused else _REFUSED.get(type(error), str(error))

    def _is_deleted(self) -> bool:
        """Whether it is the instance that Nova does not know; a target may be unknown, too."""
        if Correction.SKIP_DELETED_INSTANCES in self._context.corrections:
            try:
                self._nova.server(self._uuid)
            except errors.CloudError as error:
                return isinstance(error, errors.CloudNotFound)
        return False

    def _stored(self, outcome: Mapping[str, object]) -> bool:
        """Whether the outcome could be written down; the instance is to be unlocked anyway."""
        end = {"end_time": self._now(), **outcome}
        try:
            self._context.write(lambda session: vmoves.update(session, self._vmove.uuid, **end))
        except errors.Interrupted:
            raise
        except Exception:
            log.exception("The outcome of the evacuation could not be stored")
            return False
        metrics.VMOVES.count(str(outcome["status"]))
        return True

    def _moved(self) -> Server:
        """Do it all; gives the instance as it is now."""
        if self._begun_elsewhere:
            self._rejoin()
        else:
            self._prepare()
            self._begin()
            if not self._begun_elsewhere:
                self._nova.evacuate(self._uuid, self._entry.target)
        self._wait(self._has_arrived, self._context.conf.wait_period_after_evacuation)
        if self._entry.stop_after:
            self._stop()
        if self._entry.error_after:
            self._context.verify()
            self._nova.reset_state(self._uuid, "error")
        return self._nova.server(self._uuid)

    def _prepare(self) -> None:
        """Lock, unless the instance is locked already; bring it into a state that can be moved."""
        server = self._nova.server(self._uuid)
        locked = self._nova.server(self._uuid).locked
        if self._entry.vm_state is None:
            self._entry = _planned(self._entry, server)
        self._entry = replace(self._entry, locked=self._entry.locked or not locked)
        self._context.write(self._write_entry)
        if not locked:
            self._lock()
        self._begun_elsewhere = self._still_moves(server)
        if self._begun_elsewhere:
            log.info("An evacuation that was sent before is still under way")
        elif server.task_state or server.vm_state != self._entry.compare_state:
            self._context.verify()
            self._nova.reset_state(self._uuid, "error")
            after = self._nova.server(self._uuid)
            self._entry = replace(
                self._entry,
                compare_state=after.vm_state,
                stop_after=after.power_state == _SHUT_DOWN
                if self._entry.vm_state == "resized"
                else self._entry.stop_after,
            )

    def _lock(self) -> None:
        try:
            self._nova.lock(self._uuid)
        except errors.CloudError:
            if Correction.UNLOCK_ONLY_LOCKED in self._context.corrections:
                # Where nobody can tell, it is unlocked as upstream does.
                with contextlib.suppress(errors.CloudError):
                    locked = self._nova.server(self._uuid).locked
                    self._entry = replace(self._entry, locked=locked)
            raise

    def _still_moves(self, server: Server) -> bool:
        """Whether Nova works on an evacuation of this attempt whose end was not seen."""
        return (server.task_state or "").startswith(_MOVING) and self._context.database.read(
            lambda session: journal.sent_before(session, self._vmove)
        )

    def _begin(self) -> None:
        self._entry = replace(self._entry, evacuate_sent=True)
        self._context.write(self._write_begin)

    def _rejoin(self) -> None:
        """Go on where a dead engine stopped: send an evacuation only if none is under way."""
        if self._is_idle():
            self._context.verify()
            try:
                self._nova.evacuate(self._uuid, self._entry.target)
            except (errors.CloudConflict, errors.CloudBadRequest):
                if self._is_idle():
                    raise
                log.info("An earlier evacuation was accepted")

    def _is_idle(self) -> bool:
        server = self._nova.server(self._uuid)
        return not (self._arrived(server) or server.task_state or self._elsewhere(server))

    def _has_arrived(self) -> bool:
        server = self._nova.server(self._uuid)
        arrived = self._arrived(server)
        if arrived:
            self._arrived_at = self._place(server)
        return arrived

    def _arrived(self, server: Server) -> bool:
        before, now = self._entry.compare_state, server.vm_state
        if now == "error" and before != "error":
            raise errors.InstanceEvacuateFailed(f"Failed to evacuate instance {self._uuid}")
        # The dead engine may have got as far as stopping it.
        stopped = self._begun_elsewhere and self._entry.stop_after and now == "stopped"
        same = now == before or (before == "error" and now == "active")
        return self._elsewhere(server) and (same or stopped)

    def _elsewhere(self, server: Server) -> bool:
        return self._place(server) != self._vmove.source_host

    def _place(self, server: Server) -> str | None:
        by_service = Correction.MOVED_BY_SERVICE_HOST in self._context.corrections
        return server.host if by_service else server.hypervisor_hostname

    def _stop(self) -> None:
        self._context.verify()
        try:
            self._nova.stop(self._uuid)
        except errors.CloudError as error:
            if not (self._begun_elsewhere and isinstance(error, errors.CloudConflict)):
                self._stop_refused = True
                raise
        self._wait(self._is_stopped, self._context.conf.wait_period_after_power_off)

    def _is_stopped(self) -> bool:
        return self._nova.server(self._uuid).vm_state == "stopped"

    def _wait(self, condition: Callable[[], bool], timeout: float) -> None:
        interval = self._context.conf.verify_interval
        wait_until(condition, interval=interval, timeout=timeout, clock=self._context.clock)

    def _write_entry(self, session: Session) -> None:
        entry = self._entry
        journal.update(
            session,
            entry.vmove_uuid,
            vm_state=entry.vm_state,
            compare_state=entry.compare_state,
            stop_after=entry.stop_after,
            error_after=entry.error_after,
            locked=entry.locked,
            evacuate_sent=entry.evacuate_sent,
        )

    def _write_begin(self, session: Session) -> None:
        self._write_entry(session)
        status = VMoveStatus.ONGOING
        vmoves.update(session, self._vmove.uuid, status=status, start_time=self._now())

    def _now(self) -> datetime:
        return self._context.clock.utcnow().replace(microsecond=0)


def _planned(entry: JournalEntry, server: Server) -> JournalEntry:
    """What is to be done with an instance in this state. Spec: recovery §7.4 item 4."""
    state = server.vm_state
    movable = state in {"active", "stopped", "error"} and not server.task_state
    stops = {
        "active": False,
        "stopped": not movable,
        "resized": server.power_state == _SHUT_DOWN,
    }
    return replace(
        entry,
        vm_state=state,
        compare_state=state if movable else "error",
        stop_after=stops.get(state, True),
        error_after=state == "error",
    )
