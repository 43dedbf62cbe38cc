"""The whole API at a glance: which paths exist and what a request passes on its way."""

import json
import re
from collections.abc import Mapping
from typing import Any

import falcon
from falcon import media
from oslo_config import cfg
from oslo_middleware import RequestId

from masakari_ng import operations
from masakari_ng.api import errors, middleware, request
from masakari_ng.api.extensions import ExtensionResource
from masakari_ng.api.hosts import HostResource
from masakari_ng.api.middleware import Action, Gate, Identification, Layer, Route, Wsgi
from masakari_ng.api.notifications import NotificationResource
from masakari_ng.api.policy import Policy
from masakari_ng.api.segments import SegmentResource
from masakari_ng.api.versions import VersionResource
from masakari_ng.api.vmoves import VMoveResource

_LAYERS: tuple[Layer, ...] = (
    middleware.cross_origin,
    middleware.proxy_headers,
    RequestId,
    errors.FaultWrapper,
    middleware.size_limit,
    middleware.authentication,
)
"""Around the API, outermost first; inside are `Identification`, the router and `Gate`."""

_VERSION_LIST_LAYERS: tuple[Layer, ...] = (errors.FaultWrapper, middleware.proxy_headers)
"""Around the version list, which needs no token."""

# Actions that upstream's router knows and refuses. Spec: rest-api §4.
_FIXED: Mapping[str, Action] = {"PUT": "update", "DELETE": "delete"}
_ACTION: Mapping[str, Action] = {"POST": "action"}
_EDIT: Mapping[str, Action] = {"GET": "edit"}


def create(
    conf: cfg.ConfigOpts,
    *,
    segments: operations.Segments,
    hosts: operations.Hosts,
    notifications: operations.Notifications,
    vmoves: operations.VMoves,
) -> Wsgi:
    """The WSGI application of the API service on these operations.

    `conf` is shared with the layers around the API, which register options of their own in it.
    """
    policy = Policy(conf)
    version = VersionResource(conf)
    table = routes(
        version=version,
        extension=ExtensionResource(policy),
        segment=SegmentResource(segments),
        host=HostResource(hosts),
        notification=NotificationResource(notifications),
        vmove=VMoveResource(vmoves),
    )
    return _connected(conf, policy, version, table)


def routes(
    *,
    version: VersionResource | type[VersionResource],
    extension: ExtensionResource | type[ExtensionResource],
    segment: SegmentResource | type[SegmentResource],
    host: HostResource | type[HostResource],
    notification: NotificationResource | type[NotificationResource],
    vmove: VMoveResource | type[VMoveResource],
) -> dict[str, Mapping[str, Action]]:
    """Actions by path below the version and by method; with classes the table describes only."""
    return {
        "/versions": {"GET": "index", "POST": "create"},
        "/versions/{version_id}": {"GET": version.show, **_FIXED},
        "/versions/{version_id}/edit": _EDIT,
        "/extensions": {"GET": extension.index, "POST": "create"},
        "/extensions/{alias}": {"GET": extension.show, **_FIXED},
        "/extensions/{alias}/edit": _EDIT,
        "/segments": {"GET": segment.index, "POST": segment.create},
        "/segments/{segment_id}": {
            "GET": segment.show,
            "PUT": segment.update,
            "DELETE": segment.delete,
        },
        "/segments/{segment_id}/action": _ACTION,
        "/segments/{segment_id}/edit": _EDIT,
        "/segments/{segment_id}/hosts": {"GET": host.index, "POST": host.create},
        "/segments/{segment_id}/hosts/{host_id}": {
            "GET": host.show,
            "PUT": host.update,
            "DELETE": host.delete,
        },
        "/segments/{segment_id}/hosts/{host_id}/edit": _EDIT,
        "/notifications": {"GET": notification.index, "POST": notification.create},
        "/notifications/{notification_id}": {"GET": notification.show, **_FIXED},
        "/notifications/{notification_id}/action": _ACTION,
        "/notifications/{notification_id}/edit": _EDIT,
        "/notifications/{notification_id}/vmoves": {"GET": vmove.index, "POST": "create"},
        "/notifications/{notification_id}/vmoves/{vmove_id}": {"GET": vmove.show, **_FIXED},
        "/notifications/{notification_id}/vmoves/{vmove_id}/edit": _EDIT,
    }


def _connected(
    conf: cfg.ConfigOpts,
    policy: Policy,
    version: VersionResource,
    table: Mapping[str, Mapping[str, Action]],
) -> Wsgi:
    v1 = _falcon(Identification(conf, policy.is_admin), Gate(conf, policy))
    for path in ("/v1", "/v1/"):
        v1.add_route(path, Route({"GET": version.document}))
    for path, actions in table.items():
        v1.add_route(f"/v1{path}", Route(actions))
        v1.add_route(f"/v1/{{project_id}}{path}", Route(actions))

    version_list = _falcon()
    version_list.add_sink(version.choices, "/")

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
        media_types = f"{environ.get('HTTP_ACCEPT', '')},{environ.get('CONTENT_TYPE', '')}"
        app = self._apps.get(path.split("/")[1])
        if app is None and self._ASKS_FOR_V1.search(media_types):
            app, path = self._apps["v1"], f"/v1{path}"
        environ["PATH_INFO"] = path
        return (app or self._other)(environ, start_response)
