"""The task that does nothing, as an example for tasks of one's own. Spec: recovery §11."""

import logging

from masakari_ng.recovery.task import RecoveryTask

log = logging.getLogger(__name__)


class Noop(RecoveryTask):
    """Says that it ran; reports no progress, so clients do not see it."""

    wire_name = "masakari.engine.drivers.taskflow.no_op.Noop"

    def execute(self) -> None:
        log.info("Custom task executed successfully..!!")
