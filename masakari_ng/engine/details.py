"""What the tasks of a recovery have reported, for peers that ask the engine. Spec: rpc §7.3."""

from masakari_ng import errors
from masakari_ng.db import hosts, workflows
from masakari_ng.db.session import Database
from masakari_ng.domain import Notification, TaskDetails


class WorkflowDetails:
    """Reads them.

    Args:
        database: masakari's tables.
        taskflow_database: taskflow's.
    """

    def __init__(self, database: Database, taskflow_database: Database) -> None:
        self._database = database
        self._taskflow_database = taskflow_database

    def __call__(self, notification: Notification) -> list[TaskDetails]:
        """Of a notification as it was received; that it is stored does not matter.

        Raises:
            WorkflowDetailsUnavailable: its host is not known, or the database fails.
            Stopped: the process ends.
        """
        uuid, host = notification.notification_uuid, notification.source_host_uuid
        try:
            self._database.read(lambda session: hosts.by_uuid(session, host))
            return self._taskflow_database.read(lambda session: workflows.details(session, uuid))
        except errors.Stopped:
            raise
        except Exception as error:
            raise errors.WorkflowDetailsUnavailable(
                f"Failed to fetch notification recovery workflow details for {uuid}"
            ) from error
