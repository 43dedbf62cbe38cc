"""Evacuation of instances, several at a time. Spec: recovery §7.3."""

import contextvars
import logging
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from sqlalchemy.orm import Session

from masakari_ng import errors, logs
from masakari_ng.compute.nova import Aggregate
from masakari_ng.db import hosts, journal, vmoves
from masakari_ng.domain import Correction, JournalEntry, VMove, VMoveStatus
from masakari_ng.recovery.move import InstanceMove
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask

log = logging.getLogger(__name__)

_RESERVED = "Reserved host of Masakari."


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
            with self.context.locks.held(reserved_host, self.context.claim):
                self._open(reserved_host, host_name, moves)
                self._evacuate(moves)
                if self._returns:
                    self._return(reserved_host, host_name, moves)
        else:
            self._evacuate(moves)
        self._judge(host_name, notification_uuid)

    @property
    def _returns(self) -> bool:
        return Correction.RETURN_RESERVED_HOST in self.context.corrections

    def _unfinished(self, uuid: str, target: str | None) -> list[tuple[VMove, JournalEntry]]:
        """Moves that wait, and those that the journal says are not over.

        Upstream takes the last one first, though HA-enabled ones were inserted first.
        """
        moves = self.context.database.read(lambda s: vmoves.of_notification(s, uuid))
        if Correction.EVACUATION_ORDER in self.context.corrections:
            moves.reverse()
        waiting = [vmove for vmove in moves if vmove.status is VMoveStatus.PENDING]
        if self._returns and target:
            # With the moves over, a takeover would not know otherwise whom the host was opened for.
            self.context.write(lambda s: journal.note(s, uuid))
        entries = self.context.write(lambda s: _with_entries(s, uuid, waiting, target))
        return [(vmove, entries[vmove.uuid]) for vmove in moves if vmove.uuid in entries]

    def _open(
        self, reserved_host: str, failed_host: str, moves: list[tuple[VMove, JournalEntry]]
    ) -> None:
        """Let Nova place instances on the reserved host; it is reserved no longer."""
        self.report(f"Enabling reserved host: '{reserved_host}'", 0.1)
        if self.conf.host_failure.add_reserved_host_to_aggregate:
            for aggregate in self.nova.aggregates():
                if failed_host in aggregate.hosts:
                    self._add(reserved_host, aggregate)
        service = self.nova.service(reserved_host)
        if service.state == "down" and all(entry.vm_state is None for _, entry in moves):
            reason = f"Reserved host '{reserved_host}' is not used: its compute service is down"
            self.context.write(lambda session: self._pass_over(session, moves, reason))
            self._fail(reason)
        self.context.verify()
        self.nova.enable_service(service.id)
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

    def _pass_over(
        self, session: Session, moves: list[tuple[VMove, JournalEntry]], reason: str
    ) -> None:
        """Leave no move behind that the next round would carry out besides its own."""
        now = self.clock.utcnow().replace(microsecond=0)
        ignored = {"status": VMoveStatus.IGNORED, "message": reason, "end_time": now}
        for vmove, _ in moves:
            vmoves.update(session, vmove.uuid, **ignored)
            journal.forget(session, vmove.uuid)

    def _return(
        self, reserved_host: str, failed_host: str, moves: list[tuple[VMove, JournalEntry]]
    ) -> None:
        """Reserve the host again, unless an instance is there or still on its way."""
        ours = {vmove.instance_uuid for vmove, _ in moves}
        try:
            left = [one for one in self.nova.servers_on(failed_host) if one.uuid in ours]
            if any(one.task_state for one in left) or self.nova.servers_on(reserved_host):
                return
            id = self.nova.service(reserved_host).id
            self.context.verify()
            self.nova.disable_service(id, _RESERVED)
        except (errors.CloudError, errors.ComputeServiceNotFound) as error:
            log.warning("Host %s is not reserved again: %s", reserved_host, error)
            return
        save_reserved(self.context, reserved_host, reserved=True)
        self.report(f"No instance was moved to host '{reserved_host}': it is reserved again", 0.6)

    def _evacuate(self, moves: list[tuple[VMove, JournalEntry]]) -> None:
        """Start each move when there is a free place, and wait for all of them."""
        threads = self.conf.host_failure_recovery_threads
        running: set[Future[None]] = set()
        with ThreadPoolExecutor(threads, thread_name_prefix="evacuation") as pool:
            for vmove, entry in moves:
                with logs.about(instance_uuid=vmove.instance_uuid):
                    started = f"Evacuation of instance started: '{vmove.instance_uuid}'"
                    self.report(started, 0.5, repeated=True)
                    its_own = contextvars.copy_context()
                if len(running) >= threads:
                    self.show(0.5)
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    _raise_first(done)
                move = InstanceMove(self.context, vmove, entry)
                running.add(pool.submit(its_own.run, move.run))
            self.show(0.5)
        _raise_first(running)

    def _judge(self, host_name: str, notification_uuid: str) -> None:
        moves = self.context.database.read(lambda s: vmoves.of_notification(s, notification_uuid))
        if Correction.VMOVE_ACCOUNTING in self.context.corrections:
            moves = _newest(moves)
        succeeded = _instances(moves, VMoveStatus.SUCCEEDED)
        failed = _instances(moves, VMoveStatus.FAILED)
        ended = {VMoveStatus.SUCCEEDED, VMoveStatus.FAILED, VMoveStatus.IGNORED}
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


def _newest(moves: list[VMove]) -> list[VMove]:
    """The newest of each instance: a failure of an earlier round or run has been made good."""
    newest = {vmove.instance_uuid: vmove.uuid for vmove in reversed(moves)}
    return [vmove for vmove in moves if newest[vmove.instance_uuid] == vmove.uuid]


def _instances(moves: list[VMove], status: VMoveStatus) -> list[str]:
    return [vmove.instance_uuid for vmove in moves if vmove.status is status]


def _raise_first(done: set[Future[None]]) -> None:
    for future in done:
        future.result()
