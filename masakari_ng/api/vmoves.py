"""The moves of a host recovery over HTTP, read-only. Spec: rest-api §14."""

import falcon

from masakari_ng.api import request, views
from masakari_ng.api.policy import Authorize
from masakari_ng.operations import VMoves


class VMoveResource:
    """The moves of a notification as a list and one by one."""

    def __init__(self, vmoves: VMoves, authorize: Authorize, max_limit: int) -> None:
        self._vmoves = vmoves
        self._authorize = authorize
        self._max_limit = max_limit

    def index(self, req: falcon.Request, resp: falcon.Response, notification_id: str) -> None:
        """List moves."""
        self._authorize(req, "os_masakari_api:vmoves:index")
        page = request.page(req, self._max_limit)
        filters = request.filters(req, ("status", "type"))
        found = self._vmoves.listed(notification_id, page, filters)
        resp.media = {"vmoves": [views.vmove(vmove) for vmove in found]}

    def show(
        self, req: falcon.Request, resp: falcon.Response, notification_id: str, vmove_id: str
    ) -> None:
        """Show a move."""
        self._authorize(req, "os_masakari_api:vmoves:detail")
        resp.media = {"vmove": views.vmove(self._vmoves.show(notification_id, vmove_id))}
