"""Queries on hosts; a host is read together with its segment."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import segments
from masakari_ng.db.paging import Page, rows_of
from masakari_ng.db.rows import HostRow, SegmentRow, add, bury, change
from masakari_ng.domain import Host

_HOST = HostRow.__table__.columns
_SEGMENT = SegmentRow.__table__.columns


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
    values = {
        "uuid": uuid,
        "failover_segment_id": segment_uuid,
        "name": name,
        "type": type,
        "control_attributes": control_attributes,
        "reserved": reserved,
        "on_maintenance": on_maintenance,
    }
    try:
        add(session, HostRow, values)
    except errors.DuplicateKey as error:
        raise errors.HostExists(name) from error
    return by_uuid(session, uuid)


def by_uuid(session: Session, uuid: str) -> Host:
    """The live host with this uuid.

    Raises:
        HostNotFound: there is none.
    """
    found = _found(session, HostRow.uuid == uuid)
    if found is None:
        raise errors.HostNotFound(uuid)
    return _record(found)


def in_segment(session: Session, segment_uuid: str, uuid: str) -> Host:
    """The live host with this uuid if it belongs to the segment.

    Raises:
        HostNotFoundUnderSegment: there is none, in this segment.
    """
    found = _found(session, HostRow.uuid == uuid, HostRow.failover_segment_id == segment_uuid)
    if found is None:
        raise errors.HostNotFoundUnderSegment(uuid, segment_uuid)
    return _record(found)


def by_name(session: Session, name: str) -> Host:
    """The live host with this name, compared as the database's collation does.

    Raises:
        HostNotFoundByName: there is none.
    """
    found = _found(session, HostRow.name == name)
    if found is None:
        raise errors.HostNotFoundByName(name)
    return _record(found)


def update(session: Session, uuid: str, changes: Mapping[str, object]) -> Host:
    """Change some columns, `updated_at` only if one really changes.

    Raises:
        HostNotFound: no live host has this uuid.
        HostExists: another live host has the new name.
    """
    found = _found(session, HostRow.uuid == uuid)
    if found is None:
        raise errors.HostNotFound(uuid)
    try:
        change(session, HostRow, found, changes)
    except errors.DuplicateKey as error:
        name = changes.get("name")
        raise errors.HostExists(None if name is None else str(name)) from error
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
    segment_uuid: str,
    *,
    type: str | None = None,
    reserved: bool | None = None,
    on_maintenance: bool | None = None,
) -> list[Host]:
    """Live hosts of a segment.

    Raises:
        Invalid: as `paging.rows_of`.
    """
    query = _live().where(HostRow.failover_segment_id == segment_uuid)
    if type is not None:
        query = query.where(HostRow.type == type)
    if reserved is not None:
        query = query.where(HostRow.reserved == reserved)
    if on_maintenance is not None:
        query = query.where(HostRow.on_maintenance == on_maintenance)
    return [_record(found) for found in rows_of(session, HostRow, query, page)]


def _live() -> Select[Any]:
    # The names of the segment's columns are taken; `_record` goes by position.
    labelled = [column.label(f"segment_{column.name}") for column in _SEGMENT]
    joined = SegmentRow.uuid == HostRow.failover_segment_id
    return select(*_HOST, *labelled).join(SegmentRow, joined).where(HostRow.deleted == 0)


def _found(session: Session, *conditions: ColumnElement[bool]) -> Any:
    return session.execute(_live().where(*conditions)).first()


def _record(found: Any) -> Host:
    values = dict(zip(_HOST.keys(), found[: len(_HOST)], strict=True))
    values["segment"] = segments.record(
        dict(zip(_SEGMENT.keys(), found[len(_HOST) :], strict=True))
    )
    for flag in ("deleted", "reserved", "on_maintenance"):
        values[flag] = bool(values[flag])
    return Host(**values)
