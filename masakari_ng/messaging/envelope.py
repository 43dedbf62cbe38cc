"""The only place of the wire format: envelope, request, context, objects. Spec: rpc §4 to §6.

What comes in is checked here; whatever cannot be read raises `BadMessage` with upstream's text.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any

import iso8601

from masakari_ng import errors
from masakari_ng.domain import Notification, NotificationStatus, NotificationType, RequestContext

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
_IDENTITY = ("user", "project_id", "domain", "user_domain", "project_domain")
_TIMESTAMP = "%Y-%m-%dT%H:%M:%S.%f"
_CATALOG_TYPES = ("compute", "identity")
_OBJECT = "masakari_object."
_NAMESPACE = "masakari"
_NOTIFICATION = "Notification"
_NOTIFICATION_VERSION = "1.3"


def pack(message: Mapping[str, Any]) -> bytes:
    """The body of an AMQP message."""
    envelope = {"oslo.version": _ENVELOPE_VERSION, "oslo.message": json.dumps(message)}
    return json.dumps(envelope).encode()


def unpack(body: bytes | str, content_type: str | None) -> dict[str, Any]:
    """The inner message of a body, with or without envelope. Spec: rpc §4.2, §8.3.

    Args:
        body: not compressed.
        content_type: AMQP property of the message.

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


def cast(
    method: str, version: str, notification: Notification, context: RequestContext
) -> dict[str, Any]:
    """The inner message of a request that gets no answer. Spec: rpc §5.1.

    Args:
        method: name of the method.
        version: version of the interface that first had the method.
        notification: its only argument.
        context: who asks.
    """
    arguments = {"notification": notification_to_wire(notification)}
    request = {"method": method, "args": arguments, "version": version}
    return request | {"_unique_id": uuid.uuid4().hex} | context_to_wire(context)


def subject(message: Mapping[str, Any]) -> str:
    """What a request is about, for log lines, whatever state it is in."""
    try:
        data = message["args"]["notification"][f"{_OBJECT}data"]
        return f"notification {data['notification_uuid']}"
    except (KeyError, TypeError):
        return f"message {message.get('_unique_id')}"


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
    """The context of a request; keys that are absent, null or unknown do no harm.

    Raises:
        BadMessage: `read_deleted`, `timestamp`, `roles` or `service_catalog` is not as it must be.

    Spec: rpc §5.2
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


def _text(value: object) -> str:
    if not isinstance(value, str | int | float):
        raise errors.BadMessage(f"Field value {value} is not a text")
    return str(value)


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise errors.BadMessage(f"Field value {value} is not an object")
    return {key: _text(each) for key, each in value.items()}


def _member(kind: type[StrEnum], value: Any) -> StrEnum:
    try:
        return kind(value)
    except ValueError as error:
        raise errors.BadMessage(f"Field value {value} is invalid") from error


def _instant(value: object) -> datetime:
    parsed = iso8601.parse_date(str(value))  # without a zone: UTC
    return parsed.astimezone(UTC).replace(tzinfo=None, microsecond=0)


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_NOTIFICATION_FIELDS: dict[str, Callable[[Any], Any]] = {
    "id": int,
    "notification_uuid": _text,
    "generated_time": _instant,
    "source_host_uuid": _text,
    "type": partial(_member, NotificationType),
    "payload": _texts,
    "status": partial(_member, NotificationStatus),
    "failover_segment_uuid": _optional(_text),
    "message": _optional(_text),
    "created_at": _optional(_instant),
    "updated_at": _optional(_instant),
    "deleted_at": _optional(_instant),
    "deleted": bool,
}


def _to_json(value: object) -> object:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else value


def notification_to_wire(notification: Notification) -> dict[str, Any]:
    """The object of version 1.3 as the API sends it: every field, no changes. Spec: rpc §6.2."""
    data = {name: _to_json(getattr(notification, name)) for name in _NOTIFICATION_FIELDS}
    return {
        f"{_OBJECT}name": _NOTIFICATION,
        f"{_OBJECT}namespace": _NAMESPACE,
        f"{_OBJECT}version": _NOTIFICATION_VERSION,
        f"{_OBJECT}data": data,
    }


def notification_from_wire(value: object) -> Notification:
    """A notification object of version 1.0 to 1.3; what it does not have is None. Spec: rpc §6.3.

    Raises:
        BadMessage: another object, a newer version, or a value that its field cannot hold.
    """
    data = _object_data(value)
    try:
        fields = {
            name: read(data[name]) for name, read in _NOTIFICATION_FIELDS.items() if name in data
        }
        return Notification(**fields)
    except (ValueError, TypeError, OverflowError) as error:
        raise errors.BadMessage(str(error)) from error


def _object_data(value: object) -> dict[str, Any]:
    """The fields of a wrapped notification, checked in upstream's order."""
    if not isinstance(value, dict) or f"{_OBJECT}name" not in value:
        raise errors.BadMessage("The argument is not an object")
    name, namespace = value[f"{_OBJECT}name"], value.get(f"{_OBJECT}namespace")
    version = value.get(f"{_OBJECT}version")
    if namespace != _NAMESPACE:
        raise errors.BadMessage(f"Unsupported object type {namespace}.{name}")
    if name != _NOTIFICATION:
        raise errors.BadMessage(f"Unsupported object type {name}")
    if not compatible(version, _NOTIFICATION_VERSION):
        raise errors.BadMessage(
            f"Version {version} of {name} is not supported, supported version is "
            f"{_NOTIFICATION_VERSION}"
        )
    data = value.get(f"{_OBJECT}data")
    if not isinstance(data, dict):
        raise errors.BadMessage(f"{name} has no data")
    return data
