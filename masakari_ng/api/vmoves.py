"""The moves of a host recovery over HTTP, read-only. Spec: rest-api §14."""

import falcon

from masakari_ng.api import views
from masakari_ng.api.contract import Contract
from masakari_ng.operations import VMoves


class VMoveResource:
    """The moves of a notification as a list and one by one."""

    def __init__(self, vmoves: VMoves) -> None:
        self._vmoves = vmoves

    @Contract(
        key="vmoves",
        view=views.vmove,
        rule="os_masakari_api:vmoves:index",
        filters=("status", "type"),
    )
    def index(self, req: falcon.Request, resp: falcon.Response, notification_id: str) -> None:
        """List moves."""
        found = self._vmoves.listed(notification_id, req.context.page, req.context.filters)
        resp.media = {"vmoves": [views.vmove(vmove) for vmove in found]}

    @Contract(key="vmove", view=views.vmove, rule="os_masakari_api:vmoves:detail")
    def show(
        self, req: falcon.Request, resp: falcon.Response, notification_id: str, vmove_id: str
    ) -> None:
        """Show a move."""
        resp.media = {"vmove": views.vmove(self._vmoves.show(notification_id, vmove_id))}
