"""The only place of what records look like in JSON. Spec: rest-api §11 to §14."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from masakari_ng.domain import Host, Notification, Record, Segment, TaskDetails, VMove

Json = dict[str, Any]


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="microseconds")


def _history(record: Record) -> Json:
    return {
        "created_at": _time(record.created_at),
        "updated_at": _time(record.updated_at),
        "deleted_at": _time(record.deleted_at),
        "deleted": record.deleted,
    }


def segment(record: Segment) -> Json:
    """A segment; the same in all microversions."""
    return {
        "id": record.id,
        "uuid": record.uuid,
        "name": record.name,
        "service_type": record.service_type,
        "enabled": record.enabled,
        "description": record.description,
        "recovery_method": record.recovery_method,
        **_history(record),
    }


def host(record: Host) -> Json:
    """A host with its whole segment."""
    return {
        "id": record.id,
        "uuid": record.uuid,
        "name": record.name,
        "failover_segment_id": record.failover_segment_id,
        "failover_segment": segment(record.segment),
        "type": record.type,
        "reserved": record.reserved,
        "control_attributes": record.control_attributes,
        "on_maintenance": record.on_maintenance,
        **_history(record),
    }


def notification(record: Notification) -> Json:
    """A notification without the details of its recovery."""
    return {
        "id": record.id,
        "notification_uuid": record.notification_uuid,
        "generated_time": _time(record.generated_time),
        "source_host_uuid": record.source_host_uuid,
        "type": record.type,
        "payload": record.payload,
        "status": record.status,
        "failover_segment_uuid": record.failover_segment_uuid,
        "message": record.message,
        **_history(record),
    }


def workflow(details: Iterable[TaskDetails]) -> list[Json]:
    """What the tasks of a recovery reported; the inner progress is a string."""
    return [
        {
            "name": task.name,
            "progress": task.progress,
            "state": task.state,
            "progress_details": [
                {
                    "timestamp": entry.timestamp,
                    "progress": str(entry.progress),
                    "message": entry.message,
                }
                for entry in task.progress_details
            ],
        }
        for task in details
    ]


def vmove(record: VMove) -> Json:
    """The move of one instance."""
    return {
        "id": record.id,
        "uuid": record.uuid,
        "notification_uuid": record.notification_uuid,
        "instance_uuid": record.instance_uuid,
        "instance_name": record.instance_name,
        "source_host": record.source_host,
        "dest_host": record.dest_host,
        "start_time": _time(record.start_time),
        "end_time": _time(record.end_time),
        "type": record.type,
        "status": record.status,
        "message": record.message,
        **_history(record),
    }
