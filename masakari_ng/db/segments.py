"""Queries on segments."""

import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from sqlalchemy import Integer, exists, select, type_coerce
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.paging import Page, rows_of
from masakari_ng.db.rows import (
    HostRow,
    NotificationRow,
    SegmentRow,
    add,
    bury,
    change,
    live,
    one,
    unique,
)
from masakari_ng.domain import UNFINISHED, RecoveryMethod, Segment

_NUMBER = re.compile(r"\s*([+-]?\d{1,9})")


def create(
    session: Session,
    *,
    name: str,
    service_type: str,
    recovery_method: RecoveryMethod,
    description: str | None = None,
    enabled: bool = True,
) -> Segment:
    """Insert a segment with a new uuid.

    Raises:
        SegmentExists: a live segment has this name.
    """
    uuid = str(uuid4())
    with unique(errors.SegmentExists(name)):
        add(
            session,
            SegmentRow,
            uuid=uuid,
            name=name,
            service_type=service_type,
            recovery_method=recovery_method,
            description=description,
            enabled=enabled,
        )
    return by_uuid(session, uuid)


def by_uuid(session: Session, uuid: str) -> Segment:
    """The live segment with this uuid.

    Raises:
        SegmentNotFound: there is none.
    """
    return record(_row(session, uuid)._asdict())


def update(session: Session, uuid: str, changes: Mapping[str, object]) -> Segment:
    """Change some columns, `updated_at` only if one really changes.

    Raises:
        SegmentNotFound: no live segment has this uuid.
        SegmentExists: another live segment has the new name.
    """
    with unique(errors.SegmentExists(str(changes.get("name")))):
        change(session, SegmentRow, _row(session, uuid), changes)
    return by_uuid(session, uuid)


def delete(session: Session, uuid: str) -> None:
    """Delete the segment and its hosts softly, so that their names become free.

    Raises:
        SegmentNotFound: no live segment has this uuid.
    """
    if not bury(session, SegmentRow, SegmentRow.uuid == uuid):
        raise errors.SegmentNotFound(uuid)
    bury(session, HostRow, HostRow.failover_segment_id == uuid)


def in_use(session: Session, uuid: str) -> bool:
    """A notification of one of its live hosts is not finished. Spec: data-model §6."""
    hosts = select(HostRow.uuid).where(HostRow.deleted == 0, HostRow.failover_segment_id == uuid)
    unfinished = exists().where(
        NotificationRow.deleted == 0,
        NotificationRow.status.in_(sorted(UNFINISHED)),
        NotificationRow.source_host_uuid.in_(hosts),
    )
    return bool(session.scalar(select(unfinished)))


def listed(
    session: Session,
    page: Page,
    *,
    recovery_method: str | None = None,
    service_type: str | None = None,
    enabled: str | None = None,
) -> list[Segment]:
    """Live segments; a text that none has gives an empty list.

    `enabled` is compared as MariaDB compares text with an integer: by the number at its start, any
    word being 0. Spec: rest-api §11.

    Raises:
        Invalid: as `paging.rows_of`.
    """
    query = live(SegmentRow, recovery_method=recovery_method, service_type=service_type)
    if enabled is not None:
        number = _NUMBER.match(enabled)
        query = query.where(
            type_coerce(SegmentRow.enabled, Integer) == (int(number[1]) if number else 0)
        )
    return [record(found._asdict()) for found in rows_of(session, SegmentRow, query, page)]


def record(values: dict[str, Any]) -> Segment:
    """Make the record from the columns by name; hosts are read together with theirs."""
    values["enabled"] = values["enabled"] is not False  # NULL in rows from before the column
    return Segment(**values)


def _row(session: Session, uuid: str) -> Any:
    return one(session, live(SegmentRow, uuid=uuid), errors.SegmentNotFound(uuid))
