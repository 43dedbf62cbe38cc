"""Notifications over HTTP. Spec: rest-api §13."""

from http import HTTPStatus

import falcon

from masakari_ng.api import request, schemas, views
from masakari_ng.api.policy import Authorize
from masakari_ng.operations import Notifications

_WITH_DETAILS = (1, 1)
"""First microversion that shows what the tasks of a recovery reported."""


class NotificationResource:
    """Notifications as a list and one by one; nobody changes or deletes one."""

    def __init__(self, notifications: Notifications, authorize: Authorize, max_limit: int) -> None:
        self._notifications = notifications
        self._authorize = authorize
        self._max_limit = max_limit

    def index(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List notifications."""
        self._authorize(req, "os_masakari_api:notifications:index")
        page = request.page(req, self._max_limit)
        filters = request.filters(req, ("type", "status", "source_host_uuid", "generated-since"))
        found = self._notifications.listed(page, filters)
        resp.media = {"notifications": [views.notification(notification) for notification in found]}

    def create(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Record the report; recovery happens later, hence 202."""
        document = request.body(req, schemas.NOTIFICATION_CREATE)
        self._authorize(req, "os_masakari_api:notifications:create")
        report = document["notification"]
        schemas.validate(schemas.PAYLOADS[report["type"]], report["payload"])
        created = self._notifications.create(req.context.caller, report)
        resp.status = HTTPStatus.ACCEPTED
        resp.media = {"notification": views.notification(created)}

    def show(self, req: falcon.Request, resp: falcon.Response, notification_id: str) -> None:
        """Show a notification, from 1.1 on with the details of its recovery."""
        self._authorize(req, "os_masakari_api:notifications:detail")
        found = self._notifications.show(notification_id)
        shown = views.notification(found)
        if req.context.microversion >= _WITH_DETAILS:
            details = self._notifications.details(req.context.caller, found)
            shown["recovery_workflow_details"] = views.workflow(details)
        resp.media = {"notification": shown}
