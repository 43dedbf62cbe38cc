"""Notifications over HTTP. Spec: rest-api §13."""

from http import HTTPStatus

import falcon

from masakari_ng.api import schemas, views
from masakari_ng.api.contract import Contract
from masakari_ng.operations import Notifications

_WITH_DETAILS = (1, 1)
"""First microversion that shows what the tasks of a recovery reported."""


class NotificationResource:
    """Notifications as a list and one by one; nobody changes or deletes one."""

    def __init__(self, notifications: Notifications) -> None:
        self._notifications = notifications

    @Contract(
        key="notifications",
        view=views.notification,
        rule="os_masakari_api:notifications:index",
        filters=("type", "status", "source_host_uuid", "generated-since"),
    )
    def index(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List notifications."""
        found = self._notifications.listed(req.context.page, req.context.filters)
        resp.media = {"notifications": [views.notification(notification) for notification in found]}

    @Contract(
        key="notification",
        view=views.notification,
        rule="os_masakari_api:notifications:create",
        body=schemas.NOTIFICATION_CREATE,
        status=HTTPStatus.ACCEPTED,
    )
    def create(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Record the report; recovery happens later, hence 202."""
        report = req.context.document["notification"]
        schemas.validate(schemas.PAYLOADS[report["type"]], report["payload"])
        created = self._notifications.create(req.context.caller, report)
        resp.media = {"notification": views.notification(created)}

    @Contract(
        key="notification",
        view=views.notification,
        later={_WITH_DETAILS: {"recovery_workflow_details": views.workflow}},
        rule="os_masakari_api:notifications:detail",
    )
    def show(self, req: falcon.Request, resp: falcon.Response, notification_id: str) -> None:
        """Show a notification, from 1.1 on with the details of its recovery."""
        found = self._notifications.show(notification_id)
        shown = views.notification(found)
        if req.context.microversion >= _WITH_DETAILS:
            details = self._notifications.details(req.context.caller, found)
            shown["recovery_workflow_details"] = views.workflow(details)
        resp.media = {"notification": shown}
