"""The only place of objects on the wire: how they are wrapped, and their fields. Spec: rpc §6."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any

import iso8601

from masakari_ng import errors
from masakari_ng.domain import (
    Notification,
    NotificationStatus,
    NotificationType,
    ProgressEntry,
    TaskDetails,
)
from masakari_ng.messaging.envelope import compatible

_OBJECT = "masakari_object."
_NAMESPACE = "masakari"
_NOTIFICATION = "Notification"
_NOTIFICATION_VERSION = "1.3"
_DETAILS = "recovery_workflow_details"


def wrap(
    name: str, version: str, data: Mapping[str, object], changes: Iterable[str] = ()
) -> dict[str, Any]:
    """An object of upstream; instants are naive UTC, `changes` are fields not stored so yet."""
    wrapped = {
        f"{_OBJECT}name": name,
        f"{_OBJECT}namespace": _NAMESPACE,
        f"{_OBJECT}version": version,
        f"{_OBJECT}data": {field: _to_json(value) for field, value in data.items()},
    }
    changed = list(changes)
    return wrapped | ({f"{_OBJECT}changes": changed} if changed else {})


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
    data = {name: getattr(notification, name) for name in _NOTIFICATION_FIELDS}
    return wrap(_NOTIFICATION, _NOTIFICATION_VERSION, data)


def notification_from_wire(value: object) -> Notification:
    """A notification object of version 1.0 to 1.3; what it does not have is None. Spec: rpc §6.3.

    Raises:
        BadMessage: another object, a newer version, or a value that its field cannot hold.
    """
    try:
        return Notification(**_fields(value))
    except TypeError as error:
        raise errors.BadMessage(str(error)) from error


def with_details(received: Any, details: Iterable[TaskDetails]) -> dict[str, Any]:
    """What `notification_from_wire` has accepted, in its own version, with its tasks' reports.

    Spec: rpc §7.3
    """
    version = ".".join(received[f"{_OBJECT}version"].split(".")[:2])
    changes = [
        name for name in received.get(f"{_OBJECT}changes", ()) if name in _NOTIFICATION_FIELDS
    ]
    data = _fields(received) | {_DETAILS: [_task_to_wire(task) for task in details]}
    return wrap(_NOTIFICATION, version, data, [*changes, _DETAILS])


def details_from_wire(value: object) -> list[TaskDetails]:
    """What an answer made by `with_details` says about the tasks.

    Raises:
        BadMessage: the answer is something else.
    """
    try:
        tasks = _object_data(value)[_DETAILS]
        return [_task_from_wire(task[f"{_OBJECT}data"]) for task in tasks]
    except (KeyError, TypeError, ValueError) as error:
        raise errors.BadMessage(f"The answer cannot be read: {error!r}") from error


def _task_to_wire(task: TaskDetails) -> dict[str, Any]:
    entries = [
        {
            "timestamp": entry.timestamp,
            "progress": str(entry.progress),
            "message": entry.message,
        }
        for entry in task.progress_details
    ]
    data = {
        "name": task.name,
        "progress": task.progress,
        "progress_details": entries,
        "state": task.state,
    }
    return wrap("NotificationProgressDetails", "1.0", data, data)


def _task_from_wire(data: Mapping[str, Any]) -> TaskDetails:
    return TaskDetails(
        name=data["name"],
        state=data["state"],
        progress=data["progress"],
        progress_details=tuple(
            ProgressEntry(entry["timestamp"], float(entry["progress"]), entry["message"])
            for entry in data["progress_details"]
        ),
    )


def _fields(value: object) -> dict[str, Any]:
    """The fields that a wrapped notification has, converted."""
    data = _object_data(value)
    try:
        return {
            name: read(data[name]) for name, read in _NOTIFICATION_FIELDS.items() if name in data
        }
    except (ValueError, TypeError, OverflowError) as error:
        raise errors.BadMessage(str(error)) from error


def _object_data(value: object) -> dict[str, Any]:
    """The fields of a wrapped notification, checked in upstream's order."""
    if not isinstance(value, dict) or f"{_OBJECT}name" not in value:
        raise errors.NotAnObject(
            f"'{type(value).__name__}' object has no attribute 'notification_uuid'"
        )
    name, namespace = value[f"{_OBJECT}name"], value.get(f"{_OBJECT}namespace")
    version = value.get(f"{_OBJECT}version")
    if namespace != _NAMESPACE:
        raise errors.UnsupportedObject(f"{namespace}.{name}")
    if name != _NOTIFICATION:
        raise errors.UnsupportedObject(str(name))
    if not isinstance(version, str) or not compatible(version, _NOTIFICATION_VERSION):
        raise errors.IncompatibleObject(name, version, _NOTIFICATION_VERSION)
    data = value.get(f"{_OBJECT}data")
    if not isinstance(data, dict):
        raise errors.NotAnObject(f"{name} has no data")
    return data
