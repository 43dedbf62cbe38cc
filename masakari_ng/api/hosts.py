"""Hosts of a segment over HTTP. Spec: rest-api §12."""

from http import HTTPStatus

import falcon

from masakari_ng.api import schemas, views
from masakari_ng.api.contract import Contract
from masakari_ng.operations import Hosts


class HostResource:
    """The hosts of a segment as a list and one by one."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    @Contract(
        key="hosts",
        view=views.host,
        rule="os_masakari_api:os-hosts:index",
        filters=("type", "reserved", "on_maintenance"),
    )
    def index(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """List hosts."""
        found = self._hosts.listed(segment_id, req.context.page, req.context.filters)
        resp.media = {"hosts": [views.host(host) for host in found]}

    @Contract(
        key="host",
        view=views.host,
        rule="os_masakari_api:os-hosts:create",
        body=schemas.HOST_CREATE,
        status=HTTPStatus.CREATED,
    )
    def create(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Add a host that Nova knows."""
        fields = req.context.document["host"]
        created = self._hosts.create(req.context.caller, segment_id, fields)
        resp.media = {"host": views.host(created)}

    @Contract(key="host", view=views.host, rule="os_masakari_api:os-hosts:detail")
    def show(
        self, req: falcon.Request, resp: falcon.Response, segment_id: str, host_id: str
    ) -> None:
        """Show a host."""
        resp.media = {"host": views.host(self._hosts.show(segment_id, host_id))}

    @Contract(
        key="host",
        view=views.host,
        rule="os_masakari_api:os-hosts:update",
        body=schemas.HOST_UPDATE,
    )
    def update(
        self, req: falcon.Request, resp: falcon.Response, segment_id: str, host_id: str
    ) -> None:
        """Change a host."""
        fields = req.context.document["host"]
        updated = self._hosts.update(req.context.caller, segment_id, host_id, fields)
        resp.media = {"host": views.host(updated)}

    @Contract(rule="os_masakari_api:os-hosts:delete", status=HTTPStatus.NO_CONTENT)
    def delete(
        self, req: falcon.Request, resp: falcon.Response, segment_id: str, host_id: str
    ) -> None:
        """Remove a host from its segment."""
        self._hosts.delete(req.context.caller, segment_id, host_id)
