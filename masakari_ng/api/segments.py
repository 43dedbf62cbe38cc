"""Segments over HTTP. Spec: rest-api §11."""

from http import HTTPStatus

import falcon

from masakari_ng.api import schemas, views
from masakari_ng.api.contract import Contract
from masakari_ng.operations import Segments


class SegmentResource:
    """Segments as a list and one by one."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments

    @Contract(
        key="segments",
        view=views.segment,
        rule="os_masakari_api:segments:index",
        filters=("recovery_method", "service_type", "enabled"),
    )
    def index(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List segments."""
        found = self._segments.listed(req.context.page, req.context.filters)
        resp.media = {"segments": [views.segment(segment) for segment in found]}

    @Contract(
        key="segment",
        view=views.segment,
        rule="os_masakari_api:segments:create",
        body=schemas.SEGMENT_CREATE,
        status=HTTPStatus.CREATED,
    )
    def create(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Create a segment."""
        created = self._segments.create(req.context.caller, req.context.document["segment"])
        resp.media = {"segment": views.segment(created)}

    @Contract(key="segment", view=views.segment, rule="os_masakari_api:segments:detail")
    def show(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Show a segment."""
        resp.media = {"segment": views.segment(self._segments.show(segment_id))}

    @Contract(
        key="segment",
        view=views.segment,
        rule="os_masakari_api:segments:update",
        body=schemas.SEGMENT_UPDATE,
    )
    def update(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Change a segment."""
        fields = req.context.document["segment"]
        updated = self._segments.update(req.context.caller, segment_id, fields)
        resp.media = {"segment": views.segment(updated)}

    @Contract(rule="os_masakari_api:segments:delete", status=HTTPStatus.NO_CONTENT)
    def delete(self, req: falcon.Request, resp: falcon.Response, segment_id: str) -> None:
        """Delete a segment with its hosts."""
        self._segments.delete(req.context.caller, segment_id)
