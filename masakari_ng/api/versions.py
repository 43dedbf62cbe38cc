"""The version documents. Spec: rest-api §2."""

from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import falcon
import webob
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.api import microversion, request
from masakari_ng.api.contract import Contract

_ID = "v1.0"

_SUMMARY = {
    "id": _ID,
    "status": "CURRENT",
    "version": microversion.text(microversion.MAXIMUM),
    "min_version": microversion.text(microversion.MINIMUM),
    "updated": "2016-07-01T11:33:21Z",
}

_MEDIA_TYPES = [{"base": request.JSON, "type": f"{request.VENDOR};version=1"}]

_LINK = {"rel": "self", "href": ""}
_EXAMPLE = {**_SUMMARY, "links": [_LINK], "media-types": _MEDIA_TYPES}


class VersionResource:
    """The one version, below `/v1` and for whoever asks at another path."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._prefix: str | None = conf.osapi_masakari_link_prefix

    @Contract(key="version", view=_EXAMPLE)
    def document(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Show the version; no policy rule is asked."""
        described = {
            "rel": "describedby",
            "type": "text/html",
            "href": "https://docs.openstack.org/",
        }
        links = [*self._links(req, "/v1/"), described]
        resp.media = {"version": {**_SUMMARY, "links": links, "media-types": _MEDIA_TYPES}}

    @Contract(key="version", view=_EXAMPLE)
    def show(self, req: falcon.Request, resp: falcon.Response, version_id: str) -> None:
        """Show the version by its name."""
        if version_id != _ID:
            raise errors.ResourceNotFound
        self.document(req, resp)

    @Contract(key="versions", view={**_SUMMARY, "links": [_LINK]})
    def choices(self, req: falcon.Request, resp: falcon.Response, **_params: Any) -> None:
        """`/` and, as multiple choices, every other path outside the API; any method."""
        request.check_content_type(req)
        if req.method in request.WITH_BODY:
            request.document(req)
        resp.content_type = request.answer_type(req)
        path = quote(req.env["PATH_INFO"].encode("latin-1"))
        if path == "/":
            resp.media = {"versions": [{**_SUMMARY, "links": self._links(req, "/v1/")}]}
            return
        resp.status = HTTPStatus.MULTIPLE_CHOICES
        choice = {
            "id": _ID,
            "status": "CURRENT",
            "links": self._links(req, f"/v1{path.rstrip('/')}"),
            "media-types": _MEDIA_TYPES,
        }
        resp.media = {"choices": [choice]}

    def _links(self, req: falcon.Request, path: str) -> list[dict[str, str]]:
        """A link to `path` as the client sees the service, or as the operator says."""
        seen = webob.Request(req.env)
        start = str(seen.application_url)
        if self._prefix:
            parts = urlsplit(self._prefix)
            folder = f"{parts.path.rstrip('/')}{quote(seen.script_name)}"
            start = f"{parts.scheme}://{parts.netloc}{folder}"
        return [{"rel": "self", "href": f"{start}{path}"}]
