"""The only place where an exception becomes an HTTP answer. Spec: rest-api §7.

Faults are for requests that reached a route, plain errors for the others; nothing else leaves the
application.
"""

import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import falcon
import webob
import webob.exc

from masakari_ng import errors

log = logging.getLogger(__name__)

_STATUS: dict[type[errors.MasakariError], HTTPStatus] = {
    errors.Invalid: HTTPStatus.BAD_REQUEST,
    errors.HostNotFoundByName: HTTPStatus.BAD_REQUEST,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.CloudForbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.UnsupportedMicroversion: HTTPStatus.NOT_ACCEPTABLE,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.UnsupportedContentType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
}
"""The class or its nearest ancestor decides; what is not here is 500."""

_FAULTS = {
    HTTPStatus.BAD_REQUEST: "badRequest",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "itemNotFound",
    HTTPStatus.METHOD_NOT_ALLOWED: "badMethod",
    HTTPStatus.CONFLICT: "conflictingRequest",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "badMediaType",
}

PLAIN = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)
"""May be answered by what stands in front of the routes, in another form than a fault."""

_UNEXPECTED = (
    "Unexpected API Error. Please report this at https://bugs.launchpad.net/masakari/ and attach"
    " the Masakari API log if possible.\n"
)
_OUTSIDE = "The server has either erred or is incapable of performing the requested operation."
_FAULT_TYPE = "application/json; charset=UTF-8"


def statuses() -> list[HTTPStatus]:
    """Every status of a refusal."""
    return sorted({*_STATUS.values(), *PLAIN})


def fault_name(status: HTTPStatus) -> str:
    """The one key of the body of a fault."""
    return _FAULTS.get(status, "masakariFault")


def register(app: falcon.App[falcon.Request, falcon.Response]) -> None:
    """Let every exception of `app` end in this module."""
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(errors.MasakariError, _known)
    app.add_error_handler(falcon.HTTPError, _unrouted)
    app.add_error_handler(webob.exc.WSGIHTTPException, _plain)


class FaultWrapper:
    """The outermost edge: answers for whatever fails around the application.

    Args:
        app: what is wrapped.
        conf: not used; every layer is made in the same way.
    """

    def __init__(self, app: Callable[..., Any], conf: object = None) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        try:
            return self._app(environ, start_response)
        except Exception:
            # One request among many; the client must get an answer.
            log.exception("Request %s failed", environ.get("openstack.request_id"))
            body = _fault(HTTPStatus.INTERNAL_SERVER_ERROR, _OUTSIDE)
            answer = webob.Response(body, status=500, headers={"Content-Type": _FAULT_TYPE})
            return answer(environ, start_response)


def _fault(status: HTTPStatus, message: str) -> bytes:
    return json.dumps({fault_name(status): {"code": int(status), "message": message}}).encode()


def _write(resp: falcon.Response, status: HTTPStatus, message: str) -> None:
    resp.status = status
    resp.content_type = _FAULT_TYPE
    resp.data = _fault(status, message)


def _known(
    req: falcon.Request, resp: falcon.Response, error: errors.MasakariError, params: dict[str, Any]
) -> None:
    status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), None)
    if status is None:
        _unexpected(req, resp, error, params)
    else:
        # What was invalid may be a credential of the host; quoted, nobody can forge a line.
        reason = type(error).__name__ if isinstance(error, errors.Invalid) else str(error)
        log.info("%s %r answers %d: %r", req.method, req.path, status, reason)
        _write(resp, status, str(error))


def _unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: dict[str, Any]
) -> None:
    request_id = req.env.get("openstack.request_id")
    log.error("%s %r failed (request %s)", req.method, req.path, request_id, exc_info=error)
    _write(resp, HTTPStatus.INTERNAL_SERVER_ERROR, f"{_UNEXPECTED}{type(error)}")


def _unrouted(
    req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: dict[str, Any]
) -> None:
    """Falcon by itself raises only where it finds no route or does not know the method."""
    _plain(req, resp, webob.exc.HTTPNotFound(), params)


def _plain(req: falcon.Request, resp: falcon.Response, error: Any, params: dict[str, Any]) -> None:
    """WebOb chooses among the three forms and words them; upstream's bytes are its own."""
    answer = webob.Request(req.env).get_response(error)
    resp.status = answer.status
    resp.content_type = answer.headers["Content-Type"]
    resp.data = answer.body
