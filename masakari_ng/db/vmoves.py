"""Queries on vmoves."""

from typing import Any
from uuid import uuid4

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.paging import Page, rows_of
from masakari_ng.db.rows import VMoveRow, add, change
from masakari_ng.domain import VMove, VMoveStatus, VMoveType


def create(
    session: Session,
    *,
    notification_uuid: str,
    instance_uuid: str,
    instance_name: str,
    source_host: str,
) -> VMove:
    """Insert a pending evacuation with a new uuid."""
    uuid = str(uuid4())
    values = {
        "uuid": uuid,
        "notification_uuid": notification_uuid,
        "instance_uuid": instance_uuid,
        "instance_name": instance_name,
        "source_host": source_host,
        "type": VMoveType.EVACUATION,
        "status": VMoveStatus.PENDING,
    }
    add(session, VMoveRow, values)
    return by_uuid(session, uuid)


def by_uuid(session: Session, uuid: str) -> VMove:
    """The live vmove with this uuid.

    Raises:
        VMoveNotFound: there is none.
    """
    return _record(_row(session, uuid))


def of_notification(
    session: Session, notification_uuid: str, status: VMoveStatus | None = None
) -> list[VMove]:
    """Live vmoves of a notification, last inserted first."""
    query = _live().where(VMoveRow.notification_uuid == notification_uuid)
    if status is not None:
        query = query.where(VMoveRow.status == status)
    query = query.order_by(VMoveRow.created_at.desc(), VMoveRow.id.desc())
    return [_record(found) for found in session.execute(query)]


def listed(
    session: Session,
    page: Page,
    notification_uuid: str,
    *,
    status: str | None = None,
    type: str | None = None,
) -> list[VMove]:
    """Live vmoves of a notification; a text that none has gives an empty list.

    Raises:
        Invalid: as `paging.rows_of`.
    """
    query = _live().where(VMoveRow.notification_uuid == notification_uuid)
    if status is not None:
        query = query.where(VMoveRow.status == status)
    if type is not None:
        query = query.where(VMoveRow.type == type)
    return [_record(found) for found in rows_of(session, VMoveRow, query, page)]


def update(session: Session, uuid: str, **changes: object) -> None:
    """Change some columns, `updated_at` only if one really changes.

    Raises:
        VMoveNotFound: no live vmove has this uuid.
    """
    change(session, VMoveRow, _row(session, uuid), changes)


def _live() -> Select[Any]:
    return select(VMoveRow.__table__).where(VMoveRow.deleted == 0)


def _row(session: Session, uuid: str) -> Any:
    found = session.execute(_live().where(VMoveRow.uuid == uuid)).first()
    if found is None:
        raise errors.VMoveNotFound(uuid)
    return found


def _record(found: Any) -> VMove:
    values = found._asdict()
    values["deleted"] = bool(values["deleted"])
    values["type"] = values["type"] and VMoveType(values["type"])
    values["status"] = values["status"] and VMoveStatus(values["status"])
    return VMove(**values)
