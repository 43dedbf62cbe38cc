"""Recovery of a failed instance: it is stopped and started where it is. Spec: recovery §5.

After a takeover it simply runs from the start: each task looks at the instance before it acts, and
an instance that has come back already is restarted once more, which costs it no more than the
failure did.
"""

from oslo_utils import strutils
from taskflow.patterns import linear_flow

from masakari_ng import errors
from masakari_ng.compute.nova import Server
from masakari_ng.db import journal
from masakari_ng.domain import Correction
from masakari_ng.recovery import registry
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask


def recover(context: RecoveryContext, instance_uuid: str, runner: FlowRunner) -> None:
    """Restart an instance.

    Args:
        context: tools of this recovery.
        instance_uuid: the one that failed.
        runner: runs and keeps the flow.

    Raises:
        SkipInstanceRecovery: the instance is not to be recovered.
        IgnoreInstanceRecovery: its user has paused or rescued or stopped it.
        InstanceRecoveryFailure: it did not stop, or did not come back.
        CloudError: Nova failed.
        Interrupted: everything is left as it is.
    """
    uuid = context.notification.notification_uuid
    runner.run(
        flow(context),
        action="instance:recovery",
        notification_uuid=uuid,
        store={"instance_uuid": instance_uuid, "notification_uuid": uuid},
    )


def flow(context: RecoveryContext) -> linear_flow.Flow:
    """Stop, start, confirm."""
    phases = context.conf.taskflow_driver_recovery_flows.instance_failure_recovery_tasks
    return registry.flow("instance_recovery_engine", phases, context)


class StopInstanceTask(RecoveryTask):
    """Stop the instance, unless it is not to be touched.

    Raises:
        SkipInstanceRecovery: it is not HA-enabled.
        IgnoreInstanceRecovery: it is paused or rescued, or its user has stopped it.
        InstanceRecoveryFailure: not stopped after `wait_period_after_power_off` seconds.
    """

    wire_name = "StopInstanceTask"

    def execute(self, instance_uuid: str) -> None:
        server = self.nova.server(instance_uuid)
        self._check(server)
        if server.vm_state != "stopped":
            self._stop(server)
        self.wait(
            lambda: self.nova.server(instance_uuid).vm_state == "stopped",
            self.conf.wait_period_after_power_off,
            errors.InstanceRecoveryFailure(f"Failed to stop instance {instance_uuid}"),
        )
        self.report(f"Stopped instance: '{instance_uuid}'", 1.0)

    def _check(self, server: Server) -> None:
        options = self.conf.instance_failure
        enabled = server.metadata.get(options.ha_enabled_instance_metadata_key)
        if not (options.process_all_instances or strutils.bool_from_string(enabled)):
            reason = f"Skipping recovery for instance: {server.uuid} as it is not Ha_Enabled"
            self.report(reason, 1.0)
            raise errors.SkipInstanceRecovery(reason)
        if server.vm_state in {"paused", "rescued"} or self._stopped_by_user(server):
            reason = (
                f"Recovery of instance '{server.uuid}' is ignored as it is in '{server.vm_state}'"
                " state."
            )
            self.report(reason, 1.0)
            raise errors.IgnoreInstanceRecovery(reason)

    @property
    def _spares_stopped(self) -> bool:
        """After a crash it may be Nova that has put the instance down as stopped."""
        crash = self.context.notification.payload.get("event") == "LIFECYCLE"
        return Correction.USER_STOPPED_INSTANCES in self.context.corrections and not crash

    def _stopped_by_user(self, server: Server) -> bool:
        if not self._spares_stopped or server.vm_state != "stopped":
            return False
        uuid = self.context.notification.notification_uuid
        return not self.context.database.read(lambda s: journal.of_notification(s, uuid))

    def _stop(self, server: Server) -> None:
        if self._spares_stopped:
            # Whoever runs this again, after a failure or a takeover, must know whose stop it was.
            uuid = self.context.notification.notification_uuid
            state = server.vm_state
            self.context.write(lambda s: journal.note(s, uuid, server.uuid, state))
        if server.vm_state == "resized":
            if Correction.ERROR_TEXTS in self.context.corrections:
                self.report(f"Giving up the resize of instance: {server.uuid}")
            self.context.verify()
            self.nova.reset_state(server.uuid, "active")
        self.report(f"Stopping instance: {server.uuid}")
        self.context.verify()
        try:
            self.nova.stop(server.uuid)
        except errors.CloudConflict:
            self.report(f"Conflict when stopping instance: {server.uuid}")
            now = self.nova.server(server.uuid)
            # The stop that a dead engine has asked for may still be under way.
            if now.vm_state != "stopped" and not (self.context.resumed and now.task_state):
                raise


class StartInstanceTask(RecoveryTask):
    """Start the stopped instance.

    Raises:
        InstanceRecoveryFailure: it is stopped no longer.
    """

    wire_name = "StartInstanceTask"

    def execute(self, instance_uuid: str) -> None:
        self.report(f"Starting instance: '{instance_uuid}'")
        state = self.nova.server(instance_uuid).vm_state
        if state != "stopped":
            reason = (
                f"Invalid state for Instance {instance_uuid}. Expected state: 'STOPPED', Actual"
                f" state: '{state}'"
            )
            self.report(reason, 1.0)
            raise errors.InstanceRecoveryFailure(reason)
        self.context.verify()
        try:
            self.nova.start(instance_uuid)
        except errors.CloudConflict:
            if not self.context.resumed:  # Else the dead engine's start may be under way.
                raise
        self.report(f"Instance started: '{instance_uuid}'", 1.0)


class ConfirmInstanceActiveTask(RecoveryTask):
    """Wait until Nova reports the instance active.

    Raises:
        InstanceRecoveryFailure: not active after `wait_period_after_power_on` seconds.
    """

    wire_name = "ConfirmInstanceActiveTask"

    def execute(self, instance_uuid: str) -> None:
        self.report(f"Confirming instance '{instance_uuid}' vm_state is ACTIVE")
        self.wait(
            lambda: self.nova.server(instance_uuid).vm_state == "active",
            self.conf.wait_period_after_power_on,
            errors.InstanceRecoveryFailure(f"Failed to start instance {instance_uuid}"),
        )
        self.report(f"Confirmed instance '{instance_uuid}' vm_state is ACTIVE", 1.0)
