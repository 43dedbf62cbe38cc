"""Queries on notifications."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import case, null, update
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.paging import Page, rows_of
from masakari_ng.db.rows import (
    IntakeRow,
    NotificationRow,
    add,
    affected,
    live,
    now,
    one,
    shown,
)
from masakari_ng.domain import Notification, NotificationStatus, NotificationType

_COLUMNS = [column.name for column in shown(NotificationRow)]


def intake(session: Session, host_uuid: str, kind: NotificationType) -> None:
    """Let other reports of this host and kind wait until the transaction ends.

    It must be the first statement of the transaction: a read before it would fix what the
    transaction sees, and the report that was waited for would stay unseen.
    """
    moment = now()
    values = {"source_host_uuid": host_uuid, "type": kind, "reported_at": moment}
    # Galera lets two writers collide only where a value really changes: within one second it
    # goes back and forth between the time and NULL.
    other = case((IntakeRow.reported_at == moment, null()), else_=moment)
    if session.get_bind().dialect.name == "sqlite":
        session.execute(
            sqlite.insert(IntakeRow)
            .values(values)
            .on_conflict_do_update(
                index_elements=["source_host_uuid", "type"], set_={"reported_at": other}
            )
        )
    else:
        session.execute(
            mysql.insert(IntakeRow).values(values).on_duplicate_key_update(reported_at=other)
        )


def create(
    session: Session,
    *,
    type: NotificationType,
    generated_time: datetime,
    source_host_uuid: str,
    payload: Mapping[str, str],
    failover_segment_uuid: str | None,
) -> Notification:
    """Insert a report with a new uuid and status `new`; run twice, it inserts two.

    The record has the fraction of a second of `generated_time`, which is naive UTC; the row has
    not. The payload is stored as JSON text in its order of keys.
    """
    values: dict[str, Any] = {
        "notification_uuid": str(uuid4()),
        "created_at": now(),
        "type": type,
        "source_host_uuid": source_host_uuid,
        "status": NotificationStatus.NEW,
        "failover_segment_uuid": failover_segment_uuid,
    }
    stored = {
        "generated_time": generated_time.replace(microsecond=0),
        "payload": json.dumps(payload),
    }
    id = add(session, NotificationRow, **values, **stored)
    return Notification(id=id, **values, generated_time=generated_time, payload=dict(payload))


def by_uuid(session: Session, uuid: str) -> Notification:
    """The live notification with this uuid.

    Raises:
        NotificationNotFound: there is none.
    """
    query = live(NotificationRow, notification_uuid=uuid)
    return _record(one(session, query, errors.NotificationNotFound(uuid)))


def reported_since(
    session: Session, host_uuid: str, kind: NotificationType, since: datetime
) -> list[Notification]:
    """Live notifications of one host and kind, oldest first.

    `since` is the earliest `generated_time`, inclusive, naive UTC.
    """
    query = live(NotificationRow, source_host_uuid=host_uuid, type=kind)
    query = query.where(NotificationRow.generated_time >= since)
    return [_record(found) for found in session.execute(query.order_by(NotificationRow.id))]


def listed(
    session: Session,
    page: Page,
    *,
    type: str | None = None,
    status: str | None = None,
    source_host_uuid: str | None = None,
    generated_since: datetime | None = None,
) -> list[Notification]:
    """Live notifications; a text that none has gives an empty list.

    `generated_since` is the earliest `generated_time`, inclusive, naive UTC.

    Raises:
        Invalid: as `paging.rows_of`.
    """
    query = live(NotificationRow, type=type, status=status, source_host_uuid=source_host_uuid)
    if generated_since is not None:
        query = query.where(NotificationRow.generated_time >= generated_since)
    return [_record(found) for found in rows_of(session, NotificationRow, query, page)]


def unfinished(session: Session, statuses: Collection[NotificationStatus]) -> list[Notification]:
    """Live notifications in one of the statuses, newest first. Spec: recovery §3.1."""
    query = live(NotificationRow).where(NotificationRow.status.in_(sorted(statuses)))
    query = query.order_by(NotificationRow.created_at.desc(), NotificationRow.id.desc())
    return [_record(found) for found in session.execute(query)]


def change_status(
    session: Session,
    uuid: str,
    *,
    expected: Collection[NotificationStatus],
    status: NotificationStatus,
    message: str | None = None,
) -> bool:
    """Set the status if the present one is as expected and another; False if it is not.

    It is False, too, where the work runs again after a commit that went unnoticed. A `message` of
    None leaves the old one, an empty one removes it.
    """
    values: dict[str, object] = {"status": status, "updated_at": now()}
    if message is not None:
        values["message"] = message or None
    statement = update(NotificationRow).where(
        NotificationRow.deleted == 0,
        NotificationRow.notification_uuid == uuid,
        NotificationRow.status.in_(sorted(set(expected) - {status})),
    )
    return affected(session, statement.values(values)) == 1


def _record(found: Any) -> Notification:
    values = dict(zip(_COLUMNS, found, strict=True))
    # Upstream writes strings only; what another program wrote must not break a whole list.
    payload = json.loads(values["payload"] or "{}")
    values["payload"] = {key: str(value) for key, value in payload.items()}
    return Notification(**values)
