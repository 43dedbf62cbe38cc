"""Evacuation of instances, several at a time. Spec: recovery §7.3."""

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.compute.nova import Aggregate
from masakari_ng.db import hosts, journal, vmoves
from masakari_ng.domain import JournalEntry, VMove, VMoveStatus
from masakari_ng.recovery.move import InstanceMove
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask


class EvacuateInstancesTask(RecoveryTask):
    """Evacuate what has been prepared, and whatever a dead engine has left half done.

    Raises:
        HostRecoveryFailure: a move of this notification has not succeeded.
        LockAlreadyAcquired: another recovery of this process fills the reserved host.
        CloudError: Nova did not open the reserved host.
    """

    wire_name = "EvacuateInstancesTask"

    def execute(
        self, host_name: str, notification_uuid: str, reserved_host: str | None = None
    ) -> None:
        moves = self._unfinished(notification_uuid, reserved_host)
        uuids = ",".join(vmove.instance_uuid for vmove, _ in moves)
        self.report(
            f"Start evacuation of instances from failed host '{host_name}', instance uuids are:"
            f" '{uuids}'"
        )
        if reserved_host:
            with self.context.locks.held(reserved_host):
                self._open(reserved_host, host_name)
                self._evacuate(moves)
        else:
            self._evacuate(moves)
        self._judge(host_name, notification_uuid)

    def _unfinished(self, uuid: str, target: str | None) -> list[tuple[VMove, JournalEntry]]:
        """Moves that wait, and those that the journal says are not over; last inserted first."""
        moves = self.context.database.read(lambda s: vmoves.of_notification(s, uuid))
        waiting = [vmove for vmove in moves if vmove.status is VMoveStatus.PENDING]
        entries = self.context.write(lambda s: _with_entries(s, uuid, waiting, target))
        return [(vmove, entries[vmove.uuid]) for vmove in moves if vmove.uuid in entries]

    def _open(self, reserved_host: str, failed_host: str) -> None:
        """Let Nova place instances on the reserved host; it is reserved no longer."""
        self.report(f"Enabling reserved host: '{reserved_host}'", 0.1)
        if self.conf.host_failure.add_reserved_host_to_aggregate:
            for aggregate in self.nova.aggregates():
                if failed_host in aggregate.hosts:
                    self._add(reserved_host, aggregate)
        id = self.nova.service(reserved_host).id
        self.context.verify()
        self.nova.enable_service(id)
        save_reserved(self.context, reserved_host, reserved=False)

    def _add(self, reserved_host: str, aggregate: Aggregate) -> None:
        name = aggregate.name
        self.report(f"Add host {reserved_host} to aggregate {name}", 0.2)
        self.context.verify()
        try:
            self.nova.add_host(aggregate.id, reserved_host)
        except errors.CloudConflict:
            there = f"Host '{reserved_host}' already has been added to aggregate '{name}'."
            self.report(there, 1.0)
        else:
            self.report(f"Added host {reserved_host} to aggregate {name}", 0.3)

    def _evacuate(self, moves: list[tuple[VMove, JournalEntry]]) -> None:
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
                move = InstanceMove(self.context, vmove, entry)
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


def save_reserved(context: RecoveryContext, host_name: str, reserved: bool = False) -> None:
    """Set the flag of a reserved host; also what a plug-in gets as `update_host_method`.

    Raises:
        HostNotFoundByName: the host has been removed.
        ClaimLost, DatabaseUnavailable: as `RecoveryContext.write`.
    """
    saved = context.write(
        lambda session: hosts.update(
            session, hosts.by_name(session, host_name).uuid, {"reserved": reserved}
        )
    )
    context.host_changed(saved)


def _with_entries(
    session: Session, notification_uuid: str, waiting: list[VMove], target: str | None
) -> dict[str, JournalEntry]:
    """Journal by uuid of the move; moves that an earlier recovery left waiting get an entry."""
    known = {entry.vmove_uuid for entry in journal.of_notification(session, notification_uuid)}
    for vmove in waiting:
        if vmove.uuid not in known:
            journal.plan(session, vmove)
    journal.aim(session, notification_uuid, target)
    entries = journal.of_notification(session, notification_uuid)
    return {entry.vmove_uuid: entry for entry in entries}


def _instances(moves: list[VMove], status: VMoveStatus) -> list[str]:
    return [vmove.instance_uuid for vmove in moves if vmove.status is status]


def _raise_first(done: set[Future[None]]) -> None:
    for future in done:
        future.result()
