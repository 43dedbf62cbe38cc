"""What every request passes: the layers around the API, the caller's context, the gate.

The order of the checks is part of the API (Spec: rest-api §1); `app.py` lists the layers, `Gate`
does what comes between the route and the operation.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import falcon
import webob.exc
from keystonemiddleware.auth_token import AuthProtocol
from oslo_config import cfg
from oslo_middleware import (
    CORS,
    Healthcheck,
    HTTPProxyToWSGI,
    RequestBodySizeLimiter,
    cors,
)
from oslo_middleware.healthcheck import opts as healthcheck_opts

from masakari_ng import errors, logs
from masakari_ng.api import contract, microversion, request
from masakari_ng.api.contract import Contract
from masakari_ng.api.policy import Authorize
from masakari_ng.domain import RequestContext

Wsgi = Callable[..., Any]
Layer = Callable[[Wsgi, cfg.ConfigOpts], Wsgi]
"""Wraps an application; all layers of oslo.middleware have this form."""

Action = Callable[..., None] | str
"""What answers a method, or the name of an action that only upstream's router knows."""

_PROJECT_ID = r"[0-9a-f\-]+"

_SUFFIXES = (".json", ".xml")

_IDENTITY = {
    "user_id": "HTTP_X_USER_ID",
    "user_name": "HTTP_X_USER_NAME",
    "project_id": "HTTP_X_PROJECT_ID",
    "project_name": "HTTP_X_PROJECT_NAME",
    "domain_id": "HTTP_X_DOMAIN_ID",
    "user_domain_id": "HTTP_X_USER_DOMAIN_ID",
    "project_domain_id": "HTTP_X_PROJECT_DOMAIN_ID",
    "system_scope": "HTTP_OPENSTACK_SYSTEM_SCOPE",
    "auth_token": "HTTP_X_AUTH_TOKEN",
    "global_request_id": "openstack.global_request_id",
}


def set_defaults() -> None:
    """Give oslo.middleware's options upstream's defaults, for the whole process."""
    cors.set_defaults(
        allow_headers=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Identity-Status",
            "X-Roles",
            "X-Service-Catalog",
            "X-User-Id",
            "X-Tenant-Id",
        ],
        expose_headers=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Subject-Token",
            "X-Service-Token",
        ],
        allow_methods=["GET", "PUT", "POST", "DELETE", "PATCH"],
    )
    cfg.set_defaults(healthcheck_opts.HEALTHCHECK_OPTS, backends=["disable_by_file"])
    cfg.set_defaults(
        healthcheck_opts.DISABLE_BY_FILE_OPTS,
        disable_by_file_path="/etc/masakari/healthcheck_disable",
    )


def cross_origin(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """CORS; it also answers every `OPTIONS`."""
    set_defaults()
    return Unless(_no_origin, app, CORS(app, conf))


def proxy_headers(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """Headers of a proxy, unless they are ignored."""
    reading = HTTPProxyToWSGI(app, conf)
    return reading if conf.oslo_middleware.enable_proxy_headers_parsing else app


def size_limit(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """413 for large bodies."""
    return Unless(_no_body, app, RequestBodySizeLimiter(app, conf))


class Unless:
    """Leaves a layer out where it would change nothing; each costs as much as a small query.

    Args:
        useless: tells from the environ of a request.
        inner: without the layer.
        outer: with it.
    """

    def __init__(self, useless: Callable[[Mapping[str, Any]], bool], inner: Wsgi, outer: Wsgi):
        self._useless = useless
        self._inner = inner
        self._outer = outer

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        app = self._inner if self._useless(environ) else self._outer
        return app(environ, start_response)


def _no_origin(environ: Mapping[str, Any]) -> bool:
    return "HTTP_ORIGIN" not in environ and environ["REQUEST_METHOD"] != "OPTIONS"


def _no_body(environ: Mapping[str, Any]) -> bool:
    return environ.get("CONTENT_LENGTH", "") in {"", "0"}


def authentication(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """The token check; with `noauth2` nobody checks anything."""
    if conf.auth_strategy == "noauth2":
        return app
    protocol: Wsgi = AuthProtocol(app, {"oslo_config_config": conf})
    return protocol


def healthcheck(conf: cfg.ConfigOpts) -> Wsgi:
    """Answers on every path below it; a file takes the service out of a load balancer."""
    set_defaults()
    return Healthcheck(webob.exc.HTTPNotFound(), conf)


class Identification:
    """Makes the context of the request from headers that are trusted by now.

    Args:
        conf: says whether the headers come from the token check.
        is_admin: decides for a caller whose token was checked.
    """

    def __init__(self, conf: cfg.ConfigOpts, is_admin: Callable[[RequestContext], bool]) -> None:
        self._trusting = conf.auth_strategy == "noauth2"
        self._forwarded = conf.use_forwarded_for
        self._is_admin = is_admin

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Set `req.context.caller`."""
        caller = _context(req.env)
        logs.note(
            request_id=caller.request_id,
            global_request_id=caller.global_request_id,
            user=caller.user_id,
            project=caller.project_id,
        )
        if self._forwarded and "HTTP_X_FORWARDED_FOR" in req.env:
            caller = replace(caller, remote_address=req.env["HTTP_X_FORWARDED_FOR"])
        if caller.user_id is None and not self._trusting:
            raise webob.exc.HTTPUnauthorized
        admin = self._trusting or self._is_admin(caller)
        req.context.caller = replace(caller, is_admin=admin)


def _context(environ: Mapping[str, Any]) -> RequestContext:
    identity: dict[str, Any] = {field: environ.get(key) for field, key in _IDENTITY.items()}
    return RequestContext(
        request_id=environ["openstack.request_id"],
        roles=_words(environ.get("HTTP_X_ROLES", "")),
        service_roles=_words(environ.get("HTTP_X_SERVICE_ROLES", "")),
        is_admin_project=environ.get("HTTP_X_IS_ADMIN_PROJECT", "true").lower() == "true",
        remote_address=environ.get("REMOTE_ADDR"),
        timestamp=datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"),
        service_catalog=_catalog(environ.get("HTTP_X_SERVICE_CATALOG")),
        **identity,
    )


def _words(value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip())


def _catalog(value: str | None) -> tuple[dict[str, Any], ...]:
    """What may travel with RPC messages. Spec: rpc §5.2."""
    if value is None:
        return ()
    try:
        services = json.loads(value)
        return tuple(item for item in services if item.get("type") in ("compute", "identity"))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise webob.exc.HTTPInternalServerError("Invalid service catalog json.") from error


class Route:
    """One path of the API.

    Args:
        actions: by method.
    """

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self.actions = actions
        for method, action in actions.items():
            # The names by which Falcon finds responders; a text is not one.
            setattr(self, f"on_{method.lower()}", action)


class Gate:
    """What stands between the route and the operation, in the order of the API.

    Route, version header, content type, method, JSON, project of the URL, then what the contract of
    the action says: schema, policy, query.

    Args:
        conf: may say what a project id looks like, and how long a list may be.
        authorize: checks the policy.

    Raises:
        ConfigurationError: what it says is no pattern.
    """

    def __init__(self, conf: cfg.ConfigOpts, authorize: Authorize) -> None:
        self._authorize = authorize
        self._max_limit = conf.osapi_max_limit
        try:
            self._project_id = re.compile(conf.osapi_v1.project_id_regex or _PROJECT_ID)
        except re.error as error:
            raise errors.ConfigurationError(f"[osapi_v1] project_id_regex: {error}") from error

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Take the suffix off the path.

        The path is used as the server gives it: upstream shows each byte of an id as one character.
        """
        req.path = req.env["PATH_INFO"]
        suffix = next((end for end in _SUFFIXES if req.path.endswith(end)), "")
        req.path = req.path.removesuffix(suffix)
        req.context.answer_type = request.JSON if suffix == ".json" else request.answer_type(req)

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, resource: Route, params: dict[str, Any]
    ) -> None:
        """Check the request; afterwards what it asks for is in its context."""
        # Upstream's router offers a form for a new member of every collection.
        form = req.method == "GET" and req.path.endswith("/new")
        action = "new" if form else resource.actions.get(req.method)
        project_id = params.pop("project_id", None)
        if action is None or "" in params.values() or not self._may_be_project(project_id):
            raise falcon.HTTPRouteNotFound

        version = microversion.requested(req.headers)
        resp.set_header("Vary", microversion.HEADER)
        microversion.check(version)
        resp.set_header(
            microversion.HEADER, f"{microversion.SERVICE_TYPE} {microversion.text(version)}"
        )
        request.check_content_type(req)
        if isinstance(action, str):
            raise errors.MethodNotAllowed(
                f"The request method: '{req.method}' with action: '{action}' is not allowed on"
                " this resource"
            )

        req.context.microversion = version
        req.context.document = request.document(req) if req.method in request.WITH_BODY else None
        caller = req.context.caller
        if project_id not in (None, caller.project_id):
            raise errors.MalformedRequest(
                f"Malformed request URL: URL's project_id '{project_id}' doesn't match Context's"
                f" project_id '{caller.project_id}'"
            )
        resp.content_type = req.context.answer_type
        self._hold(req, resp, contract.of(action))

    def _hold(self, req: falcon.Request, resp: falcon.Response, agreed: Contract) -> None:
        resp.status = agreed.status
        if agreed.body is not None:
            request.check_body(req, agreed.body)
        if agreed.rule is not None:
            self._authorize(req, agreed.rule)
        if agreed.filters:
            req.context.page = request.page(req, self._max_limit)
            req.context.filters = request.filters(req, agreed.filters)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: Any, succeeded: bool
    ) -> None:
        """Say that nothing follows, which Falcon leaves open."""
        if resp.status_code == HTTPStatus.NO_CONTENT:
            resp.set_header("Content-Length", "0")

    def _may_be_project(self, project_id: str | None) -> bool:
        return project_id is None or self._project_id.fullmatch(project_id) is not None
