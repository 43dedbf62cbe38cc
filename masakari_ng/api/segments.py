"""Segments over HTTP. Spec: rest-api §11."""

from http import HTTPStatus

import falcon

from masakari_ng.api import request, schemas, views
from masakari_ng.api.policy import Authorize
from masakari_ng.operations import Segments


class SegmentResource:
    """Segments as a list and one by one."""

    def __init__(self, segments: Segments, authorize: Authorize, max_limit: int) -> None:
        self._segments = segments
        self._authorize = authorize
        self._max_limit = max_limit

    def index(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List segments."""
        self._authorize(req, "os_masakari_api:segments:index")
        page = request.page(req, self._max_limit)
        filters = request.filters(req, ("recovery_method", "service_type", "enabled"))
        found = self._segments.listed(page, filters)
        resp.media = {"segments": [views.segment(segment) for segment in found]}

    def create(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Create a segment."""
        document = request.body(req, schemas.SEGMENT_CREATE)
        self._authorize(req, "os_masakari_api:segments:create")
        created = self._segments.create(req.context.caller, document["segment"])
        resp.status = HTTPStatus.CREATED
        resp.media = {"segment": views.segment(created)}

    def show(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Show a segment."""
        self._authorize(req, "os_masakari_api:segments:detail")
        resp.media = {"segment": views.segment(self._segments.show(segment_id))}

    def update(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Change a segment."""
        document = request.body(req, schemas.SEGMENT_UPDATE)
        self._authorize(req, "os_masakari_api:segments:update")
        caller = req.context.caller
        updated = self._segments.update(caller, segment_id, document["segment"])
        resp.media = {"segment": views.segment(updated)}

    def delete(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Delete a segment with its hosts."""
        self._authorize(req, "os_masakari_api:segments:delete")
        self._segments.delete(req.context.caller, segment_id)
        resp.status = HTTPStatus.NO_CONTENT
