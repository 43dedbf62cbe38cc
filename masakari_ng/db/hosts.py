"""Queries on hosts; a host is read together with its segment."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from sqlalchemy import Select
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import segments
from masakari_ng.db.paging import Page, rows_of
from masakari_ng.db.rows import (
    HostRow,
    SegmentRow,
    add,
    bury,
    change,
    live,
    narrowed,
    one,
    shown,
    unique,
)
from masakari_ng.domain import Host, Segment

_HOST = [column.name for column in shown(HostRow)]
_SEGMENT = {column.name: column.label(f"segment_{column.name}") for column in shown(SegmentRow)}
"""By name in its table; under that name a host's row has its own."""
_LIVE = (
    live(HostRow)
    .add_columns(*_SEGMENT.values())
    .join(SegmentRow, SegmentRow.uuid == HostRow.failover_segment_id)
)


def create(
    session: Session,
    *,
    segment_uuid: str,
    name: str,
    type: str,
    control_attributes: str,
    reserved: bool = False,
    on_maintenance: bool = False,
) -> Host:
    """Insert a host with a new uuid into a segment.

    Raises:
        HostExists: a live host of any segment has this name.
    """
    uuid = str(uuid4())
    with unique(errors.HostExists(name)):
        add(
            session,
            HostRow,
            uuid=uuid,
            failover_segment_id=segment_uuid,
            name=name,
            type=type,
            control_attributes=control_attributes,
            reserved=reserved,
            on_maintenance=on_maintenance,
        )
    return by_uuid(session, uuid)


def by_uuid(session: Session, uuid: str) -> Host:
    """The live host with this uuid.

    Raises:
        HostNotFound: there is none.
    """
    return _record(one(session, _live(uuid=uuid), errors.HostNotFound(uuid)))


def in_segment(session: Session, segment_uuid: str, uuid: str) -> Host:
    """The live host with this uuid if it belongs to the segment.

    Raises:
        HostNotFoundUnderSegment: there is none, in this segment.
    """
    query = _live(uuid=uuid, failover_segment_id=segment_uuid)
    return _record(one(session, query, errors.HostNotFoundUnderSegment(uuid, segment_uuid)))


def by_name(session: Session, name: str) -> Host:
    """The live host with this name, compared as the database's collation does.

    Raises:
        HostNotFoundByName: there is none.
    """
    return _record(one(session, _live(name=name), errors.HostNotFoundByName(name)))


def reserved_in(session: Session, segment_uuid: str) -> list[Host]:
    """Reserved hosts of a segment that are not on maintenance, the one added last first."""
    query = _live(failover_segment_id=segment_uuid, reserved=True, on_maintenance=False)
    query = query.order_by(HostRow.created_at.desc(), HostRow.id.desc())
    return [_record(found) for found in session.execute(query)]


def update(session: Session, uuid: str, changes: Mapping[str, object]) -> Host:
    """Change some columns, `updated_at` only if one really changes.

    Raises:
        HostNotFound: no live host has this uuid.
        HostExists: another live host has the new name.
    """
    found = one(session, _live(uuid=uuid), errors.HostNotFound(uuid))
    with unique(errors.HostExists(str(changes.get("name")))):
        change(session, HostRow, found, changes)
    return by_uuid(session, uuid)


def delete(session: Session, uuid: str) -> None:
    """Delete the host softly, so that its name becomes free.

    Raises:
        HostNotFound: no live host has this uuid.
    """
    if not bury(session, HostRow, HostRow.uuid == uuid):
        raise errors.HostNotFound(uuid)


def listed(
    session: Session,
    page: Page,
    segment: Segment,
    *,
    type: str | None = None,
    reserved: bool | None = None,
    on_maintenance: bool | None = None,
) -> list[Host]:
    """Live hosts of a segment.

    Raises:
        Invalid: as `paging.rows_of`.
    """
    query = live(
        HostRow,
        failover_segment_id=segment.uuid,
        type=type,
        reserved=reserved,
        on_maintenance=on_maintenance,
    )
    return [_host(found, segment) for found in rows_of(session, HostRow, query, page)]


def _live(**wanted: object) -> Select[Any]:
    return narrowed(_LIVE, HostRow, **wanted)


def _record(found: Any) -> Host:
    segment = dict(zip(_SEGMENT, found[len(_HOST) :], strict=True))
    return _host(found, segments.record(segment))


def _host(found: Any, segment: Segment) -> Host:
    values = dict(zip(_HOST, found, strict=False))  # The segment's columns may stand behind.
    for flag in ("reserved", "on_maintenance"):
        values[flag] = bool(values[flag])
    return Host(**values, segment=segment)
