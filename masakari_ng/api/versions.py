"""The version documents. Spec: rest-api §2."""

from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import falcon
import webob
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.api import microversion, request

_ID = "v1.0"

_SUMMARY = {
    "id": _ID,
    "status": "CURRENT",
    "version": microversion.text(microversion.MAXIMUM),
    "min_version": microversion.text(microversion.MINIMUM),
    "updated": "2016-07-01T11:33:21Z",
}

_MEDIA_TYPES = [{"base": request.JSON, "type": f"{request.VENDOR};version=1"}]


def _base(req: falcon.Request, prefix: str | None) -> str:
    """Beginning of all links: as the client sees the service, or as the operator says."""
    seen = webob.Request(req.env)
    if not prefix:
        return str(seen.application_url)
    parts = urlsplit(prefix)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{quote(seen.script_name)}"


def _self(href: str) -> dict[str, str]:
    return {"rel": "self", "href": href}


class VersionDocument:
    """`/v1/`."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._prefix: str | None = conf.osapi_masakari_link_prefix

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Show the one version; no policy rule is asked."""
        described = {
            "rel": "describedby",
            "type": "text/html",
            "href": "https://docs.openstack.org/",
        }
        links = [_self(f"{_base(req, self._prefix)}/v1/"), described]
        resp.media = {"version": {**_SUMMARY, "links": links, "media-types": _MEDIA_TYPES}}


class VersionMember:
    """`/v1/versions/{id}`: the same document."""

    def __init__(self, document: VersionDocument) -> None:
        self._document = document

    def on_get(self, req: falcon.Request, resp: falcon.Response, version_id: str) -> None:
        """Show the one version by its name."""
        if version_id != _ID:
            raise errors.ResourceNotFound
        self._document.on_get(req, resp)


class VersionList:
    """`/` and, as multiple choices, every other path outside the API; any method."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._prefix: str | None = conf.osapi_masakari_link_prefix

    def __call__(self, req: falcon.Request, resp: falcon.Response, **_params: Any) -> None:
        """List the versions."""
        request.check_content_type(req)
        if req.method in request.WITH_BODY:
            request.document(req)
        resp.content_type = request.answer_type(req)
        base = _base(req, self._prefix)
        path = quote(req.env["PATH_INFO"].encode("latin-1"))
        if path == "/":
            resp.media = {"versions": [{**_SUMMARY, "links": [_self(f"{base}/v1/")]}]}
            return
        resp.status = HTTPStatus.MULTIPLE_CHOICES
        choice = {
            "id": _ID,
            "status": "CURRENT",
            "links": [_self(f"{base}/v1{path.rstrip('/')}")],
            "media-types": _MEDIA_TYPES,
        }
        resp.media = {"choices": [choice]}
