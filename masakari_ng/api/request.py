"""Reading requests: media types, bodies, query parameters. Spec: rest-api §5, §9."""

import json
from collections.abc import Iterable
from typing import Any

import falcon
import webob
from webob.acceptparse import create_accept_header

from masakari_ng import errors
from masakari_ng.api import schemas
from masakari_ng.operations import Page

JSON = "application/json"
VENDOR = "application/vnd.openstack.masakari+json"

_READABLE = {"", "text/plain", JSON, VENDOR}

WITH_BODY = ("POST", "PUT")
"""Bodies of other methods are ignored."""


def check_content_type(req: falcon.Request) -> None:
    """Refuse what cannot be read, whatever the method.

    Raises:
        UnsupportedContentType: not one of the accepted media types.
    """
    media_type = (req.content_type or "").partition(";")[0].strip()
    if media_type not in _READABLE:
        raise errors.UnsupportedContentType


def answer_type(req: falcon.Request) -> str:
    """The media type in which a success is answered."""
    accept = create_accept_header(req.env.get("HTTP_ACCEPT"))
    offers = accept.acceptable_offers([JSON, VENDOR])
    return str(offers[0][0]) if offers else JSON


def document(req: falcon.Request) -> Any:
    """The body as JSON; None when there is none.

    Upstream takes a chunked body for an empty one, so only `Content-Length` counts.

    Raises:
        MalformedRequest: not JSON in UTF-8.
    """
    try:
        length = int(req.env.get("CONTENT_LENGTH") or 0)
        return json.loads(req.env["wsgi.input"].read(length).decode()) if length else None
    except (ValueError, RecursionError) as error:
        raise errors.MalformedRequest("Malformed request body") from error


def check_body(req: falcon.Request, versions: schemas.Versions) -> None:
    """Hold the document of the request against the schema of the requested microversion.

    Raises:
        ValidationError: it does not match.
    """
    newest = max(version for version in versions if version <= req.context.microversion)
    schemas.validate(versions[newest], req.context.document)


def _query(req: falcon.Request) -> list[tuple[str, str]]:
    try:
        return list(webob.Request(req.env).GET.items())
    except UnicodeDecodeError as error:
        raise errors.InvalidInput("the query is not UTF-8") from error


def page(req: falcon.Request, max_limit: int) -> Page:
    """Which part of a list is asked for, in which order.

    Args:
        req: the request.
        max_limit: greatest and default number of items.

    Raises:
        InvalidInput: `limit` or `page_size` is no number from 0 on, or the query is not UTF-8.
    """
    pairs = _query(req)
    single = dict(pairs)
    limit = _number("limit", single.get("limit", str(max_limit)))
    _number("page_size", single.get("page_size", "0"))
    return Page(
        limit=min(limit, max_limit),
        marker=single.get("marker"),
        sort_keys=tuple(value.strip() for key, value in pairs if key == "sort_key"),
        sort_dirs=tuple(value.strip() for key, value in pairs if key == "sort_dir"),
    )


def _number(name: str, value: str) -> int:
    try:
        number = int(value)
    except ValueError as error:
        raise errors.InvalidInput(f"{name} must be an integer") from error
    if number < 0:
        raise errors.InvalidInput(f"{name} must be >= 0")
    return number


def filters(req: falcon.Request, names: Iterable[str]) -> dict[str, str]:
    """The filters of a list that the request gives; of a repeated one the last value counts."""
    given = dict(_query(req))
    return {name: given[name] for name in names if name in given}
