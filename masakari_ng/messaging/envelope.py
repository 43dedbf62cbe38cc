"""The only place of the wire format: envelope, request, reply, context. Spec: rpc §4, §5, §7.4.

What comes in is checked here; whatever cannot be read raises `BadMessage` with upstream's text.
"""

import contextlib
import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from masakari_ng import errors
from masakari_ng.domain import RequestContext

_CONTENT_TYPE = "application/json"

PROPERTIES: Mapping[str, Any] = {
    "content_type": _CONTENT_TYPE,
    "content_encoding": "utf-8",
    "delivery_mode": 2,
    "priority": 0,
}
"""Keywords of every message for kombu's `Producer.publish`. Spec: rpc §4.1."""

_ENVELOPE_VERSION = "2.0"
_CONTEXT = "_context_"
_CONTEXT_FIELDS = {
    # Key on the wire, field of the record. The other keys are constants or copies of these.
    "user": "user_id",
    "user_name": "user_name",
    "project_id": "project_id",
    "project_name": "project_name",
    "domain": "domain_id",
    "user_domain": "user_domain_id",
    "project_domain": "project_domain_id",
    "system_scope": "system_scope",
    "is_admin": "is_admin",
    "is_admin_project": "is_admin_project",
    "auth_token": "auth_token",
    "request_id": "request_id",
    "global_request_id": "global_request_id",
    "resource_uuid": "resource_uuid",
    "remote_address": "remote_address",
    "timestamp": "timestamp",
}
_LOGGED = ("request_id", "global_request_id", "user", "project")
_IDENTITY = ("user", "project_id", "domain", "user_domain", "project_domain")
_TIMESTAMP = "%Y-%m-%dT%H:%M:%S.%f"
_CATALOG_TYPES = ("compute", "identity")


def pack(message: Mapping[str, Any]) -> bytes:
    """The body of an AMQP message."""
    envelope = {"oslo.version": _ENVELOPE_VERSION, "oslo.message": json.dumps(message)}
    return json.dumps(envelope).encode()


def received(message: Any) -> dict[str, Any]:
    """The inner message of what kombu has received, which may be compressed.

    Raises:
        BadMessage: it cannot be decompressed, or as `unpack`.
    """
    if message.errors:
        raise errors.BadMessage(f"The body cannot be decompressed: {message.errors[0][1]}")
    return unpack(message.body, message.content_type)


def unpack(body: bytes | str, content_type: str | None) -> dict[str, Any]:
    """The inner message of a body, with or without envelope. Spec: rpc §4.2, §8.3.

    Raises:
        BadMessage: another type of content, another version, or no JSON object.
    """
    if content_type != _CONTENT_TYPE:
        raise errors.BadMessage(f"Content type {content_type} is not {_CONTENT_TYPE}")
    outer = _json_object(body)
    if "oslo.version" not in outer or "oslo.message" not in outer:
        return outer
    if not compatible(outer["oslo.version"], _ENVELOPE_VERSION):
        raise errors.BadMessage(f"Envelope version {outer['oslo.version']} is not supported")
    return _json_object(outer["oslo.message"])


def _json_object(text: object) -> dict[str, Any]:
    if not isinstance(text, str | bytes):
        raise errors.BadMessage("The message is not a JSON text")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.BadMessage(f"The message is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise errors.BadMessage("The message is not a JSON object")
    return value


def compatible(version: object, own: str) -> bool:
    """Whether a peer's version has our major number and a minor one that we know."""
    try:
        major, minor = (int(part) for part in str(version).split(".")[:2])
    except ValueError:
        return False
    own_major, own_minor = (int(part) for part in own.split("."))
    return major == own_major and minor <= own_minor


def request(
    method: str, version: str, arguments: Mapping[str, Any], context: RequestContext
) -> dict[str, Any]:
    """The inner message of a request that gets no answer, its arguments as they stand on the wire.

    Spec: rpc §5.1
    """
    message = {"method": method, "args": arguments, "version": version}
    return message | unique() | context_to_wire(context)


def call_keys(message_id: str, reply_queue: str) -> dict[str, Any]:
    """What a request has in addition if it gets an answer."""
    return {"_msg_id": message_id, "_reply_q": reply_queue, "_timeout": None}


def reply(
    request: Mapping[str, Any], result: object, failure: str | None, *, ending: bool
) -> dict[str, Any]:
    """The inner message of an answer. Spec: rpc §7.4."""
    answer = {"result": result, "failure": failure, "ending": ending, "_msg_id": request["_msg_id"]}
    return answer | unique()


def unique() -> dict[str, str]:
    """The key by which a message that comes twice is recognised."""
    return {"_unique_id": uuid.uuid4().hex}


def subject(message: Mapping[str, Any]) -> str:
    """What a request is about, for log lines, whatever state it is in."""
    try:
        data = message["args"]["notification"]["masakari_object.data"]
        return f"notification {data['notification_uuid']}"
    except (KeyError, TypeError):
        return f"message {message.get('_unique_id')}"


def facts(message: Mapping[str, Any]) -> dict[str, str]:
    """Who asks, and about what, for log lines, whatever state it is in."""
    found = {name: message.get(f"{_CONTEXT}{name}") for name in _LOGGED}
    with contextlib.suppress(KeyError, TypeError):
        data = message["args"]["notification"]["masakari_object.data"]
        found["notification_uuid"] = data["notification_uuid"]
    return {name: value for name, value in found.items() if isinstance(value, str)}


def context_to_wire(context: RequestContext) -> dict[str, Any]:
    """The 24 keys of a context, with prefix. Spec: rpc §5.2."""
    values = {key: getattr(context, name) for key, name in _CONTEXT_FIELDS.items()}
    identity = (values[key] or "-" for key in _IDENTITY)
    values |= {
        "user_id": context.user_id,
        "project": context.project_id,
        "read_only": False,
        "show_deleted": False,
        "read_deleted": "no",
        "roles": list(context.roles),
        "user_identity": " ".join(identity),
        "timestamp": context.timestamp or datetime.now(UTC).strftime(_TIMESTAMP),
        "service_catalog": _catalog(context.service_catalog),
    }
    return {f"{_CONTEXT}{key}": value for key, value in values.items()}


def context_from_wire(message: Mapping[str, Any]) -> RequestContext:
    """The context of a request; keys that are absent, null or unknown do no harm. Spec: rpc §5.2.

    Raises:
        BadMessage: `read_deleted`, `timestamp`, `roles` or `service_catalog` is not as it must be.
    """
    values = {
        key.removeprefix(_CONTEXT): value
        for key, value in message.items()
        if key.startswith(_CONTEXT) and value is not None
    }
    _check_context(values)
    fields = {name: values[key] for key, name in _CONTEXT_FIELDS.items() if key in values}
    fields.setdefault("request_id", f"req-{uuid.uuid4()}")
    fields["roles"] = tuple(values.get("roles", ()))
    fields["service_catalog"] = tuple(_catalog(values.get("service_catalog", ())))
    return RequestContext(**fields)


def _check_context(values: Mapping[str, Any]) -> None:
    if values.get("read_deleted", "no") not in ("no", "yes", "only"):
        raise errors.BadMessage(
            f"read_deleted can only be one of 'no', 'yes' or 'only', not {values['read_deleted']!r}"
        )
    for key in ("roles", "service_catalog"):
        if not isinstance(values.get(key, []), list):
            raise errors.BadMessage(f"{key} of the context is not a list")
    if "timestamp" in values:
        try:
            datetime.strptime(values["timestamp"], _TIMESTAMP)
        except (ValueError, TypeError) as error:
            raise errors.BadMessage(str(error)) from error


def _catalog(entries: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        entry
        for entry in entries
        if isinstance(entry, dict) and entry.get("type") in _CATALOG_TYPES
    ]
