"""Recovery of a failed compute host. Spec: recovery §6, §7.1, §7.2."""

import logging

from sqlalchemy.orm import Session
from taskflow.patterns import linear_flow

from masakari_ng import errors
from masakari_ng.compute.nova import Server
from masakari_ng.db import journal, vmoves
from masakari_ng.domain import Host, JournalEntry, RecoveryMethod
from masakari_ng.recovery import registry
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask

log = logging.getLogger(__name__)

_ACTION = "instance:evacuate"
_FLOW = "instance_evacuate_engine"
_TRUE_WORDS = frozenset({"t", "true", "on", "y", "yes", "1"})


def recover(context: RecoveryContext, host: Host, runner: FlowRunner) -> None:
    """Move the instances of a failed host elsewhere.

    Args:
        context: tools of this recovery.
        host: the one that failed, with its segment.
        runner: runs and keeps the flow.

    Raises:
        SkipHostRecovery: there was nothing to move.
        HostRecoveryFailure: some instance was not moved.
        UnsupportedRecovery: the segment's recovery method is not built yet.
        CloudError: Nova failed before any instance was touched.
        Stopped: the process ends; everything is left as it is.
        ClaimLost: another engine has taken over; everything is left as it is.
        DatabaseUnavailable: the database was away for too long; everything is left as it is.
    """
    method = host.segment.recovery_method
    if method is not RecoveryMethod.AUTO:
        raise errors.UnsupportedRecovery(f"Recovery method '{method}' is not supported yet")
    uuid = context.notification.notification_uuid
    runner.run(
        auto_flow(context),
        action=_ACTION,
        notification_uuid=uuid,
        store={"host_name": host.name, "notification_uuid": uuid},
    )


def auto_flow(context: RecoveryContext) -> linear_flow.Flow:
    """The flow in which Nova chooses where instances go."""
    phases = context.conf.taskflow_driver_recovery_flows.host_auto_failure_recovery_tasks
    return registry.flow(_FLOW, phases, context, update_host_method=None)


class DisableComputeServiceTask(RecoveryTask):
    """Let Nova place nothing on the failed host, and give it time to see that the host is down.

    Raises:
        ComputeServiceNotFound: Nova has no nova-compute of this name.
    """

    wire_name = "DisableComputeServiceTask"

    def execute(self, host_name: str) -> None:
        self.report(f"Disabling compute service on host: '{host_name}'")
        services = self.nova.services(host_name)
        if not services:
            raise errors.ComputeServiceNotFound(host_name)
        self.nova.disable_service(services[0].id, self.conf.host_failure.service_disable_reason)
        if not _begun(self.context):
            seconds = self.conf.wait_period_after_service_update
            log.info(
                "Sleeping %s sec before starting recovery thread until nova recognizes the node"
                " down.",
                seconds,
            )
            self.clock.sleep(seconds)
        self.report(f"Disabled compute service on host: '{host_name}'", 1.0)


class PrepareHAEnabledInstancesTask(RecoveryTask):
    """Choose the instances to be evacuated and write them down, HA-enabled ones first.

    After a takeover the choice of the dead engine stands.

    Raises:
        SkipHostRecovery: no instance is to be evacuated.
    """

    wire_name = "PrepareHAEnabledInstancesTask"

    def execute(self, host_name: str, notification_uuid: str) -> None:
        self.report("Preparing instances for evacuation")
        resumed = _begun(self.context)
        if resumed:
            self.report(f"Resuming the evacuation of instances, count: '{len(resumed)}'", 1.0)
            return
        chosen = self._chosen(host_name)
        if not chosen:
            reason = f"Skipped host '{host_name}' recovery as no instances needs to be evacuated"
            self.report(reason, 1.0)
            raise errors.SkipHostRecovery(reason)
        earlier = len(
            self.context.database.read(lambda s: vmoves.of_notification(s, notification_uuid))
        )
        self.context.write(lambda s: self._plan(s, host_name, chosen, earlier))
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
            ha_enabled = _is_true(server.metadata.get(options.ha_enabled_instance_metadata_key))
            if options.ignore_instances_in_error_state and server.vm_state == "error":
                if ha_enabled:
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
        if len(vmoves.of_notification(session, uuid)) > earlier:
            return  # An earlier run of this transaction was committed without our noticing.
        for server in chosen:
            vmove = vmoves.create(
                session,
                notification_uuid=uuid,
                instance_uuid=server.uuid,
                instance_name=server.name,
                source_host=host_name,
            )
            journal.plan(session, vmove)


def _begun(context: RecoveryContext) -> list[JournalEntry]:
    """Moves that a dead engine had planned or begun, and not brought to an end."""
    if not context.resumed:
        return []
    uuid = context.notification.notification_uuid
    return context.database.read(lambda session: journal.of_notification(session, uuid))


def _is_true(word: str | None) -> bool:
    return word is not None and word.strip().lower() in _TRUE_WORDS
