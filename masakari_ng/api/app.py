"""The whole API at a glance: which paths exist and what a request passes on its way."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import falcon
from falcon import media
from oslo_config import cfg
from oslo_middleware import HTTPProxyToWSGI, RequestBodySizeLimiter, RequestId

from masakari_ng import operations
from masakari_ng.api import errors, middleware, request
from masakari_ng.api.extensions import ExtensionCollection, ExtensionMember
from masakari_ng.api.hosts import HostCollection, HostMember
from masakari_ng.api.middleware import Gate, Identification, Layer, Wsgi
from masakari_ng.api.notifications import NotificationCollection, NotificationMember
from masakari_ng.api.policy import Policy
from masakari_ng.api.segments import SegmentCollection, SegmentMember
from masakari_ng.api.versions import VersionDocument, VersionList, VersionMember
from masakari_ng.api.vmoves import VMoveCollection, VMoveMember

_LAYERS: tuple[Layer, ...] = (
    middleware.cross_origin,
    HTTPProxyToWSGI,
    RequestId,
    errors.FaultWrapper,
    RequestBodySizeLimiter,
    middleware.authentication,
)
"""Around the API, outermost first; inside are `Identification`, the router and `Gate`."""

_VERSION_LIST_LAYERS: tuple[Layer, ...] = (errors.FaultWrapper, HTTPProxyToWSGI)
"""Around the version list, which needs no token."""

_CHANGES = {"PUT": "update", "DELETE": "delete"}
_EDIT = {"GET": "edit"}

_REFUSED: Mapping[str, Mapping[str, str]] = {
    "/versions": {"GET": "index", "POST": "create"},
    "/versions/{version_id}": _CHANGES,
    "/versions/{version_id}/edit": _EDIT,
    "/extensions": {"POST": "create"},
    "/extensions/{alias}": _CHANGES,
    "/extensions/{alias}/edit": _EDIT,
    "/segments/{segment_id}/action": {"POST": "action"},
    "/segments/{segment_id}/edit": _EDIT,
    "/segments/{segment_id}/hosts/{host_id}/edit": _EDIT,
    "/notifications/{notification_id}": _CHANGES,
    "/notifications/{notification_id}/action": {"POST": "action"},
    "/notifications/{notification_id}/edit": _EDIT,
    "/notifications/{notification_id}/vmoves": {"POST": "create"},
    "/notifications/{notification_id}/vmoves/{vmove_id}": _CHANGES,
    "/notifications/{notification_id}/vmoves/{vmove_id}/edit": _EDIT,
}
"""Methods that upstream's router knows without an action behind them. Spec: rest-api §4."""


class _NoAction:
    """Stands on the paths where everything is refused."""


def create(
    conf: cfg.ConfigOpts,
    *,
    segments: operations.Segments,
    hosts: operations.Hosts,
    notifications: operations.Notifications,
    vmoves: operations.VMoves,
) -> Wsgi:
    """The WSGI application of the API service.

    Args:
        conf: options of the service; those of the layers are registered in it.
        segments: what the routes of segments do.
        hosts: what those of hosts do.
        notifications: what those of notifications do.
        vmoves: what those of the moves do.
    """
    policy = Policy(conf)
    most = conf.osapi_max_limit
    document = VersionDocument(conf)
    routes: dict[str, object] = {
        "/versions/{version_id}": VersionMember(document),
        "/extensions": ExtensionCollection(policy, policy.allows),
        "/extensions/{alias}": ExtensionMember(policy, policy.allows),
        "/segments": SegmentCollection(segments, policy, most),
        "/segments/{segment_id}": SegmentMember(segments, policy),
        "/segments/{segment_id}/hosts": HostCollection(hosts, policy, most),
        "/segments/{segment_id}/hosts/{host_id}": HostMember(hosts, policy),
        "/notifications": NotificationCollection(notifications, policy, most),
        "/notifications/{notification_id}": NotificationMember(notifications, policy),
        "/notifications/{notification_id}/vmoves": VMoveCollection(vmoves, policy, most),
        "/notifications/{notification_id}/vmoves/{vmove_id}": VMoveMember(vmoves, policy),
    }

    v1 = _falcon(Identification(conf, policy.is_admin), Gate(conf, _REFUSED))
    v1.add_route("/v1", document)
    v1.add_route("/v1/", document)
    for path in {**routes, **_REFUSED}:
        resource = routes.get(path, _NoAction())
        v1.add_route(f"/v1{path}", resource)
        v1.add_route(f"/v1/{{project_id}}{path}", resource)

    version_list = _falcon()
    version_list.add_sink(VersionList(conf), "/")

    apps = {"v1": _wrapped(v1, _LAYERS, conf), "healthcheck": middleware.healthcheck(conf)}
    return UrlMap(apps, _wrapped(version_list, _VERSION_LIST_LAYERS, conf))


def _falcon(*components: Any) -> falcon.App[falcon.Request, falcon.Response]:
    app = falcon.App(middleware=components)
    errors.register(app)
    # Upstream escapes whatever is not ASCII, Falcon's own handler does not.
    handler = media.JSONHandler(dumps=json.dumps)
    app.resp_options.media_handlers.update({request.JSON: handler, request.VENDOR: handler})
    return app


def _wrapped(app: Wsgi, layers: tuple[Layer, ...], conf: cfg.ConfigOpts) -> Wsgi:
    for layer in reversed(layers):
        app = layer(app, conf)
    return app


class UrlMap:
    """Chooses the application by the first element of the path. Spec: rest-api §1.

    Args:
        apps: applications by that element; `v1` is one of them.
        other: for all other paths.
    """

    _SLASHES = re.compile("/+")
    _ASKS_FOR_V1 = re.compile(r";\s*version=1\s*(?:[;,]|$)")

    def __init__(self, apps: Mapping[str, Wsgi], other: Wsgi) -> None:
        self._apps = apps
        self._other = other

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        path = self._SLASHES.sub("/", f"/{environ.get('PATH_INFO', '')}")
        app = self._apps.get(path.split("/")[1])
        if app is None and any(map(self._ASKS_FOR_V1.search, self._media_types(environ))):
            app, path = self._apps["v1"], f"/v1{path}"
        environ["PATH_INFO"] = path
        return (app or self._other)(environ, start_response)

    @staticmethod
    def _media_types(environ: Mapping[str, Any]) -> Iterator[str]:
        yield environ.get("HTTP_ACCEPT", "")
        yield environ.get("CONTENT_TYPE", "")
