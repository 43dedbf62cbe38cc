"""Evacuation of instances, several at a time. Spec: recovery §7.3."""

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import journal, vmoves
from masakari_ng.domain import JournalEntry, VMove, VMoveStatus
from masakari_ng.recovery.move import InstanceMove
from masakari_ng.recovery.task import RecoveryTask


class EvacuateInstancesTask(RecoveryTask):
    """Evacuate what has been prepared, and whatever a dead engine has left half done.

    Raises:
        HostRecoveryFailure: a move of this notification has not succeeded.
    """

    wire_name = "EvacuateInstancesTask"

    def execute(
        self, host_name: str, notification_uuid: str, reserved_host: str | None = None
    ) -> None:
        moves = self._unfinished(notification_uuid)
        uuids = ",".join(vmove.instance_uuid for vmove, _ in moves)
        self.report(
            f"Start evacuation of instances from failed host '{host_name}', instance uuids are:"
            f" '{uuids}'"
        )
        self._evacuate(moves, reserved_host)
        self._judge(host_name, notification_uuid)

    def _unfinished(self, uuid: str) -> list[tuple[VMove, JournalEntry]]:
        """Moves that wait, and those that the journal says are not over; last inserted first."""
        moves = self.context.database.read(lambda s: vmoves.of_notification(s, uuid))
        waiting = [vmove for vmove in moves if vmove.status is VMoveStatus.PENDING]
        entries = self.context.write(lambda s: _with_entries(s, uuid, waiting))
        return [(vmove, entries[vmove.uuid]) for vmove in moves if vmove.uuid in entries]

    def _evacuate(self, moves: list[tuple[VMove, JournalEntry]], reserved_host: str | None) -> None:
        """Start each move when there is a free place, and wait for all of them."""
        threads = self.conf.host_failure_recovery_threads
        running: set[Future[None]] = set()
        with ThreadPoolExecutor(threads, thread_name_prefix="evacuation") as pool:
            for vmove, entry in moves:
                self.report(
                    f"Evacuation of instance started: '{vmove.instance_uuid}'", 0.5, repeated=True
                )
                if len(running) >= threads:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    _raise_first(done)
                move = InstanceMove(self.context, vmove, entry, reserved_host)
                running.add(pool.submit(move.run))
        _raise_first(running)

    def _judge(self, host_name: str, notification_uuid: str) -> None:
        moves = self.context.database.read(lambda s: vmoves.of_notification(s, notification_uuid))
        succeeded = _instances(moves, VMoveStatus.SUCCEEDED)
        failed = _instances(moves, VMoveStatus.FAILED)
        ended = {VMoveStatus.SUCCEEDED, VMoveStatus.FAILED}
        others = [vmove.instance_uuid for vmove in moves if vmove.status not in ended]
        if succeeded:
            uuids = ",".join(sorted(succeeded))
            self.report(f"Successfully evacuate instances '{uuids}' from host '{host_name}'", 0.7)
        if failed:
            uuids = ",".join(failed)
            self._fail(f"Failed to evacuate instances '{uuids}' from host '{host_name}'")
        if others:
            uuids = ",".join(others)
            self._fail(
                f"Instances '{uuids}' were not evacuated from host '{host_name}': vmove status is"
                " still pending"
            )
        self.report("Evacuation process completed!", 1.0)

    def _fail(self, reason: str) -> None:
        self.report(reason, 0.7)
        raise errors.HostRecoveryFailure(reason)


def _with_entries(
    session: Session, notification_uuid: str, waiting: list[VMove]
) -> dict[str, JournalEntry]:
    """Journal by uuid of the move; moves that an earlier recovery left waiting get an entry."""
    known = {entry.vmove_uuid for entry in journal.of_notification(session, notification_uuid)}
    for vmove in waiting:
        if vmove.uuid not in known:
            journal.plan(session, vmove)
    entries = journal.of_notification(session, notification_uuid)
    return {entry.vmove_uuid: entry for entry in entries}


def _instances(moves: list[VMove], status: VMoveStatus) -> list[str]:
    return [vmove.instance_uuid for vmove in moves if vmove.status is status]


def _raise_first(done: set[Future[None]]) -> None:
    for future in done:
        future.result()
