"""Queries on vmoves."""

from typing import Any
from uuid import uuid4

from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.paging import Page, rows_of
from masakari_ng.db.rows import VMoveRow, add, change, live, one
from masakari_ng.domain import VMove, VMoveStatus, VMoveType


def create(
    session: Session,
    *,
    notification_uuid: str,
    instance_uuid: str,
    instance_name: str,
    source_host: str,
) -> VMove:
    """Insert a pending evacuation with a new uuid; run twice, it inserts two."""
    uuid = str(uuid4())
    add(
        session,
        VMoveRow,
        uuid=uuid,
        notification_uuid=notification_uuid,
        instance_uuid=instance_uuid,
        instance_name=instance_name,
        source_host=source_host,
        type=VMoveType.EVACUATION,
        status=VMoveStatus.PENDING,
    )
    return by_uuid(session, uuid)


def by_uuid(session: Session, uuid: str) -> VMove:
    """The live vmove with this uuid.

    Raises:
        VMoveNotFound: there is none.
    """
    return VMove(**_row(session, uuid)._asdict())


def of_notification(
    session: Session, notification_uuid: str, status: VMoveStatus | None = None
) -> list[VMove]:
    """Live vmoves of a notification, last inserted first."""
    query = live(VMoveRow, notification_uuid=notification_uuid, status=status)
    query = query.order_by(VMoveRow.created_at.desc(), VMoveRow.id.desc())
    return [VMove(**found._asdict()) for found in session.execute(query)]


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
    query = live(VMoveRow, notification_uuid=notification_uuid, status=status, type=type)
    return [VMove(**found._asdict()) for found in rows_of(session, VMoveRow, query, page)]


def update(session: Session, uuid: str, **changes: object) -> None:
    """Change some columns, `updated_at` only if one really changes.

    Raises:
        VMoveNotFound: no live vmove has this uuid.
    """
    change(session, VMoveRow, _row(session, uuid), changes)


def _row(session: Session, uuid: str) -> Any:
    return one(session, live(VMoveRow, uuid=uuid), errors.VMoveNotFound(uuid))
