"""The API in the form of OpenAPI 3.1, made of what the service itself uses.

Paths come from the table of routes, the rest from contracts, schemas, views and errors.
"""

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from masakari_ng.api import app, contract, errors, microversion, request, schemas, shapes
from masakari_ng.api.contract import Contract
from masakari_ng.api.extensions import ExtensionResource
from masakari_ng.api.hosts import HostResource
from masakari_ng.api.notifications import NotificationResource
from masakari_ng.api.segments import SegmentResource
from masakari_ng.api.versions import VersionResource
from masakari_ng.api.vmoves import VMoveResource

Json = dict[str, Any]

_DESCRIPTION = f"""\
Instance high availability for OpenStack.

Each path below `/v1` also exists with the caller's project in front, as
`/v1/{{project_id}}/segments`. What belongs to some microversions only has `x-openstack` with
`min-ver` and, where it ends, `max-ver`; without a version header the service speaks the lowest.

Bodies may also be called `{request.VENDOR}`."""

_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}

_LIST: Mapping[str, tuple[str, Json]] = {
    "limit": ("Most items to give; cut to what the service gives at most.", _COUNT),
    "page_size": ("Checked and not used.", _COUNT),
    "marker": ("`id` of the last item of the previous page.", _TEXT),
    "sort_key": ("Property to sort by; may be repeated.", {"type": "array", "items": _TEXT}),
    "sort_dir": (
        "Direction of the sort key at the same place.",
        {"type": "array", "items": {"type": "string", "enum": ["asc", "desc"]}},
    ),
}

_HEADERS: Mapping[str, str] = {
    microversion.HEADER: "Service type and microversion of the answer.",
    "X-OpenStack-Request-ID": "The request as the log calls it.",
}


def document() -> Json:
    """The whole description, ready for JSON."""
    table = app.routes(
        version=VersionResource,
        extension=ExtensionResource,
        segment=SegmentResource,
        host=HostResource,
        notification=NotificationResource,
        vmove=VMoveResource,
    )
    actions: Mapping[str, Mapping[str, Any]] = {
        "/": {"GET": VersionResource.choices},
        "/v1/": {"GET": VersionResource.document},
        **{f"/v1{path}": methods for path, methods in table.items()},
    }
    paths = {path: dict(_operations(path, methods)) for path, methods in actions.items()}
    paths["/healthcheck"] = {"get": _health()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Masakari",
            "version": microversion.text(microversion.MAXIMUM),
            "description": _DESCRIPTION,
            "x-openstack": {"min-ver": microversion.text(microversion.MINIMUM)},
        },
        "security": [{"token": []}],
        "paths": {path: operations for path, operations in paths.items() if operations},
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
            "headers": {
                name: {"description": text, "schema": _TEXT} for name, text in _HEADERS.items()
            },
            "responses": {str(int(status)): _refusal(status) for status in errors.statuses()},
        },
    }


def _operations(path: str, methods: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    """What upstream's router only knows by name is left out: its answer is always 405."""
    for method, act in methods.items():
        if not isinstance(act, str):
            yield method.lower(), _operation(path, method, act)


def _operation(path: str, method: str, act: Callable[..., None]) -> Json:
    agreed = contract.of(act)
    owner, _, name = act.__qualname__.partition(".")
    noun = owner.removesuffix("Resource").lower()
    summary, _, rest = (act.__doc__ or "").partition("\n\n")
    described: Json = {
        "operationId": f"{noun}_{name}",
        "tags": [noun],
        "summary": summary,
        "description": rest.strip(),
        "parameters": [*_parameters(path, agreed)],
        "responses": {str(int(agreed.status)): _success(agreed), **_refusals(path, method, agreed)},
    }
    if agreed.rule is None:
        described["security"] = [{}] if path == "/" else [{"token": []}]
    else:
        described["x-policy"] = agreed.rule
    if agreed.body is not None:
        content = _content({"anyOf": [*_versions(agreed.body)]})
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(path: str, agreed: Contract) -> Iterator[Json]:
    for part in path.split("/"):
        if part.startswith("{"):
            yield {"name": part[1:-1], "in": "path", "required": True, "schema": _TEXT}
    if path.startswith("/v1"):
        yield {
            "name": microversion.HEADER,
            "in": "header",
            "description": f"`{microversion.SERVICE_TYPE} X.Y` or `latest` in the place of X.Y.",
            "schema": {**_TEXT, "example": f"{microversion.SERVICE_TYPE} latest"},
        }
    if agreed.filters:
        for name, (text, schema) in _LIST.items():
            yield {"name": name, "in": "query", "description": text, "schema": schema}
        for name in agreed.filters:
            yield {"name": name, "in": "query", "description": "Filter.", "schema": _TEXT}


def _versions(versions: schemas.Versions) -> Iterator[Json]:
    """The schemas of a body, each with the microversions that it is for."""
    firsts = sorted(versions)
    for first, following in zip(firsts, [*firsts[1:], None], strict=True):
        bounds = {"min-ver": microversion.text(first)}
        if following is not None:
            bounds["max-ver"] = microversion.text((following[0], following[1] - 1))
        schema: Any = versions[first].schema
        yield {**schema, "x-openstack": bounds}


def _success(agreed: Contract) -> Json:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS}
    answer = {"description": agreed.status.phrase, "headers": headers}
    if agreed.key is None:
        return answer
    shown = _view(agreed)
    if agreed.filters is not None or agreed.key == "versions":
        shown = {"type": "array", "items": shown}
    schema = {"type": "object", "properties": {agreed.key: shown}, "required": [agreed.key]}
    return {**answer, "content": _content(schema)}


def _content(schema: Json, *kinds: str) -> Json:
    return {kind: {"schema": schema} for kind in kinds or (request.JSON,)}


def _view(agreed: Contract) -> Json:
    if isinstance(agreed.view, Mapping):
        return shapes.of_example(agreed.view)
    shown = {**shapes.of_view(agreed.view), "additionalProperties": False}
    for first, keys in agreed.later.items():
        bounds = {"x-openstack": {"min-ver": microversion.text(first)}}
        for key, view in keys.items():
            shown["properties"][key] = {**shapes.of_view(view), **bounds}
    return shown


def _refusals(path: str, method: str, agreed: Contract) -> Json:
    """References to the answers that this route can give besides its success."""
    api = path != "/"
    where = {
        HTTPStatus.BAD_REQUEST: True,
        HTTPStatus.UNAUTHORIZED: api,
        HTTPStatus.FORBIDDEN: agreed.rule is not None,
        HTTPStatus.NOT_FOUND: "{" in path,
        HTTPStatus.METHOD_NOT_ALLOWED: path.endswith("}") and method == "GET",
        HTTPStatus.NOT_ACCEPTABLE: api,
        HTTPStatus.CONFLICT: method != "GET",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: api,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE: True,
        HTTPStatus.INTERNAL_SERVER_ERROR: api,
    }
    codes = [int(status) for status, applies in where.items() if applies]
    return {str(code): {"$ref": f"#/components/responses/{code}"} for code in codes}


def _refusal(status: HTTPStatus) -> Json:
    inner = shapes.of_example({"code": int(status), "message": ""})
    fault: Json = shapes.of_example({errors.fault_name(status): {}})
    fault["properties"] = dict.fromkeys(fault["properties"], inner)
    content = _content({"type": "object"}) | _texts()
    return {
        "description": status.phrase,
        "content": content if status in errors.PLAIN else _content(fault),
    }


def _texts() -> Json:
    return _content(_TEXT, "text/plain", "text/html")


def _health() -> Json:
    content = _content({"type": "object"}) | _texts()
    return {
        "operationId": "healthcheck",
        "summary": "Say whether the service takes requests; it needs no token.",
        "security": [{}],
        "responses": {
            str(int(status)): {"description": status.phrase, "content": content}
            for status in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE)
        },
    }
