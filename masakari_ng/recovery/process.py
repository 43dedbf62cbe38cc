"""Recovery from a failed nova-compute: Nova places nothing on its host. Spec: recovery §4.

After a takeover it simply runs from the start: a service that is disabled already is left alone.
"""

from taskflow.patterns import linear_flow

from masakari_ng import errors
from masakari_ng.recovery import registry
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask


def recover(
    context: RecoveryContext, process_name: str, host_name: str, runner: FlowRunner
) -> None:
    """Disable the compute service whose process has failed.

    Args:
        context: tools of this recovery.
        process_name: also what Nova calls the service's binary.
        host_name: of the service.
        runner: runs and keeps the flow.

    Raises:
        ProcessRecoveryFailure: Nova did not disable it.
        ComputeServiceNotFound: Nova knows no such service.
        CloudError: Nova failed.
        Interrupted: everything is left as it is.
    """
    uuid = context.notification.notification_uuid
    runner.run(
        flow(context),
        action="process:recovery",
        notification_uuid=uuid,
        store={
            "process_name": process_name,
            "host_name": host_name,
            "notification_uuid": uuid,
        },
    )


def flow(context: RecoveryContext) -> linear_flow.Flow:
    """Disable, confirm."""
    phases = context.conf.taskflow_driver_recovery_flows.process_failure_recovery_tasks
    return registry.flow("process_recovery_engine", phases, context)


class DisableComputeNodeTask(RecoveryTask):
    """Disable the service, unless it is disabled.

    Raises:
        ComputeServiceNotFound: Nova knows no such service.
    """

    wire_name = "DisableComputeNodeTask"

    def execute(self, process_name: str, host_name: str) -> None:
        self.report(f"Disabling compute service on host: '{host_name}'")
        if self.nova.service(host_name, process_name).status == "disabled":
            self.report(
                f"Skipping recovery for process {process_name} as it is already disabled", 1.0
            )
            return
        # Looked up again: the requests are upstream's.
        id = self.nova.service(host_name, process_name).id
        self.context.verify()
        self.nova.disable_service(id, self.conf.process_failure.service_disable_reason)
        self.report(f"Disabled compute service on host: '{host_name}'", 1.0)


class ConfirmComputeNodeDisabledTask(RecoveryTask):
    """Wait until Nova reports the service disabled.

    Raises:
        ProcessRecoveryFailure: not disabled after `wait_period_after_service_update` seconds.
    """

    wire_name = "ConfirmComputeNodeDisabledTask"

    def execute(self, process_name: str, host_name: str) -> None:
        self.report(f"Confirming compute service is disabled on host: '{host_name}'")
        self.wait(
            lambda: self.nova.service(host_name, process_name).status == "disabled",
            self.conf.wait_period_after_service_update,
            errors.ProcessRecoveryFailure(f"Failed to disable service {process_name}"),
        )
        self.report(f"Confirmed compute service is disabled on host: '{host_name}'", 1.0)
