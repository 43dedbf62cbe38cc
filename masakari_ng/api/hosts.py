"""Hosts of a segment over HTTP. Spec: rest-api §12."""

from http import HTTPStatus

import falcon

from masakari_ng.api import request, schemas, views
from masakari_ng.api.policy import Authorize
from masakari_ng.operations import Hosts


class HostResource:
    """The hosts of a segment as a list and one by one."""

    def __init__(self, hosts: Hosts, authorize: Authorize, max_limit: int) -> None:
        self._hosts = hosts
        self._authorize = authorize
        self._max_limit = max_limit

    def index(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """List hosts."""
        self._authorize(req, "os_masakari_api:os-hosts:index")
        page = request.page(req, self._max_limit)
        filters = request.filters(req, ("type", "reserved", "on_maintenance"))
        found = self._hosts.listed(segment_id, page, filters)
        resp.media = {"hosts": [views.host(host) for host in found]}

    def create(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Add a host that Nova knows."""
        document = request.body(req, schemas.HOST_CREATE)
        self._authorize(req, "os_masakari_api:os-hosts:create")
        created = self._hosts.create(req.context.caller, segment_id, document["host"])
        resp.status = HTTPStatus.CREATED
        resp.media = {"host": views.host(created)}

    def show(
        self, req: falcon.Request, resp: falcon.Response, segment_id: str, host_id: str
    ) -> None:
        """Show a host."""
        self._authorize(req, "os_masakari_api:os-hosts:detail")
        resp.media = {"host": views.host(self._hosts.show(segment_id, host_id))}

    def update(
        self, req: falcon.Request, resp: falcon.Response, segment_id: str, host_id: str
    ) -> None:
        """Change a host."""
        document = request.body(req, schemas.HOST_UPDATE)
        self._authorize(req, "os_masakari_api:os-hosts:update")
        caller = req.context.caller
        updated = self._hosts.update(caller, segment_id, host_id, document["host"])
        resp.media = {"host": views.host(updated)}

    def delete(
        self, req: falcon.Request, resp: falcon.Response, segment_id: str, host_id: str
    ) -> None:
        """Remove a host from its segment."""
        self._authorize(req, "os_masakari_api:os-hosts:delete")
        self._hosts.delete(req.context.caller, segment_id, host_id)
        resp.status = HTTPStatus.NO_CONTENT
