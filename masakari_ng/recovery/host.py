"""Recovery of a failed compute host. Spec: recovery §6, §7.1, §7.2."""

import logging
from collections.abc import Callable, Sequence

from oslo_utils import strutils
from sqlalchemy.orm import Session
from taskflow import retry
from taskflow.patterns import linear_flow

from masakari_ng import errors, logs
from masakari_ng.clock import wait_until
from masakari_ng.compute.nova import Server
from masakari_ng.db import journal, vmoves
from masakari_ng.domain import Correction, JournalEntry, RecoveryMethod, VMove, VMoveStatus
from masakari_ng.recovery import registry
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask

log = logging.getLogger(__name__)

_FLOW = "instance_evacuate_engine"
_NOT_NEEDED = "Not begun by an aborted round, and needed no longer."
_FALLBACKS = {
    RecoveryMethod.AUTO_PRIORITY: (
        "Failed to evacuate all instances from failed_host: '%s' using 'auto' workflow, retrying"
        " using 'reserved_host' workflow."
    ),
    RecoveryMethod.RH_PRIORITY: (
        "Failed to evacuate all instances from failed_host '%s' using 'reserved_host' workflow,"
        " retrying using 'auto' workflow"
    ),
}


class HostRecovery:
    """Moves the instances of a failed host elsewhere.

    Args:
        context: tools of this recovery.
        host_name: the one that failed.
        runner: runs and keeps the flows.
        reserved_hosts: names of those that may take the instances, in the order of trial.
        update_host_method: sets the flag of a reserved host; for plug-ins.
    """

    def __init__(
        self,
        context: RecoveryContext,
        host_name: str,
        runner: FlowRunner,
        reserved_hosts: Sequence[str] = (),
        update_host_method: Callable[..., None] | None = None,
    ) -> None:
        self._context = context
        self._host_name = host_name
        self._runner = runner
        self._reserved_hosts = list(reserved_hosts)
        self._update_host_method = update_host_method

    def run(self, method: RecoveryMethod) -> None:
        """Run the workflow of the method, and its fallback if that fails.

        After a takeover the reserved host that the dead engine was filling comes first: its flag
        is gone already, and so is the workflow that may have failed before it.

        Raises:
            SkipHostRecovery: there was nothing to move.
            HostRecoveryFailure: some instance was not moved.
            ReservedHostsUnavailable: no reserved host is left.
            CloudError: Nova failed before any instance was touched.
            Interrupted: everything is left as it is.
        """
        workflows = {
            RecoveryMethod.AUTO: [self._auto],
            RecoveryMethod.RESERVED_HOST: [self._reserved],
            RecoveryMethod.AUTO_PRIORITY: [self._auto, self._reserved],
            RecoveryMethod.RH_PRIORITY: [self._reserved, self._auto],
        }[method]
        chosen = {entry.target for entry in _begun(self._context) if entry.target}
        if chosen:
            others = [name for name in self._reserved_hosts if name not in chosen]
            self._reserved_hosts = [*sorted(chosen), *others]
            if method is RecoveryMethod.AUTO_PRIORITY:
                workflows = [self._reserved]
        *first, last = workflows
        for workflow in first:
            try:
                return workflow()
            except (errors.SkipHostRecovery, errors.Interrupted):
                raise
            except Exception as error:  # Whatever it was, the other may do.
                unknown = not isinstance(error, errors.MasakariError)
                log.warning(_FALLBACKS[method], self._host_name, exc_info=unknown)
        return last()

    def _auto(self) -> None:
        self._run(auto_flow(self._context))

    def _reserved(self) -> None:
        if not self._reserved_hosts:
            raise errors.ReservedHostsUnavailable
        flow = reserved_host_flow(self._context, self._update_host_method)
        try:
            self._run(flow, reserved_host_list=self._reserved_hosts)
        finally:
            self._context.locks.give_back(self._context.claim)

    def _run(self, flow: linear_flow.Flow, **more: object) -> None:
        uuid = self._context.notification.notification_uuid
        self._runner.run(
            flow,
            action="instance:evacuate",
            notification_uuid=uuid,
            store={"host_name": self._host_name, "notification_uuid": uuid, **more},
        )


def auto_flow(context: RecoveryContext) -> linear_flow.Flow:
    """The flow in which Nova chooses where instances go."""
    phases = context.conf.taskflow_driver_recovery_flows.host_auto_failure_recovery_tasks
    return registry.flow(_FLOW, phases, context, update_host_method=None)


def reserved_host_flow(
    context: RecoveryContext, update_host_method: Callable[..., None] | None = None
) -> linear_flow.Flow:
    """The flow whose main tasks are tried with one reserved host after the other."""
    phases = context.conf.taskflow_driver_recovery_flows.host_rh_failure_recovery_tasks
    return registry.flow(
        _FLOW,
        phases,
        context,
        retry=NextReservedHost(context),
        update_host_method=update_host_method,
    )


class NextReservedHost(retry.ParameterizedForEach):
    """Tries the next reserved host after any failure, as long as there is one."""

    def __init__(self, context: RecoveryContext) -> None:
        super().__init__(rebind=["reserved_host_list"], provides="reserved_host")
        self._context = context

    def execute(self, values: list[str], history: retry.History) -> str:
        if Correction.RESERVED_HOST_WAIT not in self._context.corrections:
            return str(super().execute(values, history))
        tried = set(history.provided_iter())
        return self._free([name for name in values if name not in tried])

    def _free(self, names: list[str]) -> str:
        """The first one that no other recovery fills, as soon as there is one; locked."""
        locks, claim = self._context.locks, self._context.claim
        locks.give_back(claim)
        log.info("Choosing a reserved host that is not in use: %s", ", ".join(names))
        while True:
            for name in names:
                if locks.take(name, claim):
                    return name
            self._context.clock.sleep(self._context.conf.verify_interval)

    def on_failure(self, values: list[str], history: retry.History) -> str:
        # The next host must not be opened for instances that are left to a takeover.
        if history.caused_by(errors.Interrupted, index=-1):
            return str(retry.REVERT)
        return str(super().on_failure(values, history))


class DisableComputeServiceTask(RecoveryTask):
    """Let Nova place nothing on the failed host, and give it time to see that the host is down.

    After a takeover nothing is left to do: it was done before the first move was planned.

    Raises:
        ComputeServiceNotFound: Nova has no nova-compute of this name.
    """

    wire_name = "DisableComputeServiceTask"

    def execute(self, host_name: str) -> None:
        self.report(f"Disabling compute service on host: '{host_name}'")
        if not _moves(self.context):
            self._disable(host_name)
            self._wait_for_nova(host_name)
        self.report(f"Disabled compute service on host: '{host_name}'", 1.0)

    def _disable(self, host_name: str) -> None:
        id = self.nova.service(host_name).id
        self.context.verify()
        self.nova.disable_service(id, self.conf.host_failure.service_disable_reason)

    def _wait_for_nova(self, host_name: str) -> None:
        seconds = self.conf.wait_period_after_service_update
        log.info(
            "Sleeping %s sec before starting recovery thread until nova recognizes the node down.",
            seconds,
        )
        if Correction.SERVICE_DOWN_POLL not in self.context.corrections or not seconds:
            self.clock.sleep(seconds)
            return
        interval = self.conf.verify_interval
        try:
            wait_until(
                lambda: self._is_down(host_name),
                interval=interval,
                timeout=seconds,
                clock=self.clock,
            )
        except errors.WaitTimeout:
            self.report(f"Nova still reports the compute service on '{host_name}' up", 0.5)

    def _is_down(self, host_name: str) -> bool:
        try:
            return self.nova.service(host_name).state == "down"
        except errors.CloudError as error:
            log.warning("Nova does not say whether host %s is down: %s", host_name, error)
            return False


class PrepareHAEnabledInstancesTask(RecoveryTask):
    """Choose the instances to be evacuated and write them down, HA-enabled ones first.

    After a takeover the choice of the dead engine stands.

    Raises:
        SkipHostRecovery: no instance is to be evacuated.
    """

    wire_name = "PrepareHAEnabledInstancesTask"

    def execute(self, host_name: str, notification_uuid: str) -> None:
        self.report("Preparing instances for evacuation")
        resumed = _moves(self.context)
        if resumed:
            self.report(f"Resuming the evacuation of instances, count: '{len(resumed)}'", 1.0)
            return
        chosen = self._chosen(host_name)
        earlier = len(
            self.context.database.read(lambda s: vmoves.of_notification(s, notification_uuid))
        )
        self.context.write(lambda s: self._plan(s, host_name, chosen, earlier))
        if not chosen:
            reason = f"Skipped host '{host_name}' recovery as no instances needs to be evacuated"
            self.report(reason, 1.0)
            raise errors.SkipHostRecovery(reason)
        uuids = ",".join(server.uuid for server in chosen)
        self.report(f"Instances to be evacuated are: '{uuids}'", 1.0)

    def _chosen(self, host_name: str) -> list[Server]:
        servers = self.nova.servers_on(host_name)
        self.report(f"Total instances running on failed host '{host_name}' is {len(servers)}", 0.3)
        chosen, others = self._divided(servers)
        self.report(f"Total HA Enabled instances count: '{len(chosen)}'", 0.6)
        if self.conf.host_failure.evacuate_all_instances:
            self.report(f"Total Non-HA Enabled instances count: '{len(others)}'", 0.7)
            chosen += others
            self.report(
                "All instances (HA Enabled/Non-HA Enabled) should be considered for evacuation."
                f" Total count is: '{len(chosen)}'",
                0.8,
            )
        return chosen

    def _divided(self, servers: list[Server]) -> tuple[list[Server], list[Server]]:
        """HA-enabled ones and the others, in Nova's order."""
        options = self.conf.host_failure
        enabled: list[Server] = []
        others: list[Server] = []
        for server in servers:
            ha_enabled = strutils.bool_from_string(
                server.metadata.get(options.ha_enabled_instance_metadata_key)
            )
            if options.ignore_instances_in_error_state and server.vm_state == "error":
                if ha_enabled:
                    with logs.about(instance_uuid=server.uuid):
                        self.report(
                            f"Ignoring recovery of HA_Enabled instance '{server.uuid}' as it is in"
                            " 'error' state.",
                            0.4,
                        )
                continue
            (enabled if ha_enabled else others).append(server)
        return enabled, others

    def _plan(self, session: Session, host_name: str, chosen: list[Server], earlier: int) -> None:
        uuid = self.context.notification.notification_uuid
        moves = vmoves.of_notification(session, uuid)
        if len(moves) > earlier:
            return  # An earlier run of this transaction was committed without our noticing.
        if Correction.PENDING_VMOVES in self.context.corrections:
            chosen = self._unplanned(session, moves, chosen)
        for server in chosen:
            vmove = vmoves.create(
                session,
                notification_uuid=uuid,
                instance_uuid=server.uuid,
                instance_name=server.name,
                source_host=host_name,
            )
            journal.plan(session, vmove)

    def _unplanned(
        self, session: Session, moves: list[VMove], chosen: list[Server]
    ) -> list[Server]:
        """Those for which an aborted round has left no move; its moves of others end here."""
        now = self.clock.utcnow().replace(microsecond=0)
        unplanned = {server.uuid: server for server in chosen}
        ignored = {"status": VMoveStatus.IGNORED, "message": _NOT_NEEDED, "end_time": now}
        for vmove in moves:
            waits = vmove.status is VMoveStatus.PENDING
            if waits and not unplanned.pop(vmove.instance_uuid, None):
                vmoves.update(session, vmove.uuid, **ignored)
                journal.forget(session, vmove.uuid)
        return list(unplanned.values())


def _moves(context: RecoveryContext) -> list[JournalEntry]:
    """Moves that a dead engine had planned or begun, and not brought to an end."""
    uuid = context.notification.notification_uuid
    return [entry for entry in _begun(context) if entry.vmove_uuid != uuid]


def _begun(context: RecoveryContext) -> list[JournalEntry]:
    """All that a dead engine has left in the journal."""
    if not context.resumed:
        return []
    uuid = context.notification.notification_uuid
    return context.database.read(lambda session: journal.of_notification(session, uuid))
