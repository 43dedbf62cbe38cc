"""The entry point `taskflow_driver` of `masakari.driver`. Spec: recovery §11."""

from collections.abc import Callable, Sequence

from masakari_ng.domain import RecoveryMethod
from masakari_ng.recovery import instance, process
from masakari_ng.recovery.host import HostRecovery
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext


class TaskFlowDriver:
    """One method for each type of notification, with upstream's names and arguments.

    Each returns when the recovery is done; whatever else ends it is raised.

    Args:
        runner: runs and keeps the flows.
    """

    def __init__(self, runner: FlowRunner) -> None:
        self._runner = runner

    def execute_host_failure(
        self,
        context: RecoveryContext,
        host_name: str,
        recovery_method: RecoveryMethod,
        notification_uuid: str,
        *,
        update_host_method: Callable[..., None] | None = None,
        reserved_host_list: Sequence[str] | None = None,
    ) -> None:
        """As `HostRecovery.run`."""
        reserved = reserved_host_list or ()
        HostRecovery(context, host_name, self._runner, reserved, update_host_method).run(
            recovery_method
        )

    def execute_instance_failure(
        self, context: RecoveryContext, instance_uuid: str, notification_uuid: str
    ) -> None:
        """As `instance.recover`."""
        instance.recover(context, instance_uuid, self._runner)

    def execute_process_failure(
        self,
        context: RecoveryContext,
        process_name: str,
        host_name: str,
        notification_uuid: str,
    ) -> None:
        """As `process.recover`."""
        process.recover(context, process_name, host_name, self._runner)
