"""Queries on notifications."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Select, case, null, select, update
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.paging import Page, rows_of
from masakari_ng.db.rows import IntakeRow, NotificationRow, add, affected, now
from masakari_ng.domain import Notification, NotificationStatus, NotificationType


def intake(session: Session, host_uuid: str, kind: NotificationType) -> None:
    """Let other reports of this host and kind wait until the transaction ends.

    It must be the first statement of the transaction: a read before it would fix what the
    transaction sees, and the report that was waited for would stay unseen.

    Args:
        session: the transaction that will look for duplicates and insert.
        host_uuid: uuid of the source host.
        kind: what was reported.
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
    """Insert a report with a new uuid and status `new`.

    Args:
        session: open transaction.
        type: what failed.
        generated_time: the reporter's time, naive UTC. The record has its fraction of a second,
            the row has not.
        source_host_uuid: uuid of the host.
        payload: stored as JSON text in this order of keys.
        failover_segment_uuid: uuid of the host's segment.
    """
    uuid = str(uuid4())
    values = {
        "notification_uuid": uuid,
        "type": type,
        "generated_time": generated_time.replace(microsecond=0),
        "source_host_uuid": source_host_uuid,
        "payload": json.dumps(payload),
        "status": NotificationStatus.NEW,
        "failover_segment_uuid": failover_segment_uuid,
    }
    add(session, NotificationRow, values)
    return replace(by_uuid(session, uuid), generated_time=generated_time)


def by_uuid(session: Session, uuid: str) -> Notification:
    """The live notification with this uuid.

    Raises:
        NotificationNotFound: there is none.
    """
    found = session.execute(_live().where(NotificationRow.notification_uuid == uuid)).first()
    if found is None:
        raise errors.NotificationNotFound(uuid)
    return _record(found)


def reported_since(
    session: Session, host_uuid: str, kind: NotificationType, since: datetime
) -> list[Notification]:
    """Live notifications of one host and kind, oldest first.

    Args:
        session: open transaction.
        host_uuid: uuid of the source host.
        kind: what was reported.
        since: earliest `generated_time`, inclusive, naive UTC.
    """
    query = _live().where(
        NotificationRow.source_host_uuid == host_uuid,
        NotificationRow.type == kind,
        NotificationRow.generated_time >= since,
    )
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

    Args:
        session: open transaction.
        page: which part, in which order.
        type: any text.
        status: any text.
        source_host_uuid: any text.
        generated_since: earliest `generated_time`, inclusive, naive UTC.

    Raises:
        Invalid: as `paging.rows_of`.
    """
    query = _live()
    if type is not None:
        query = query.where(NotificationRow.type == type)
    if status is not None:
        query = query.where(NotificationRow.status == status)
    if source_host_uuid is not None:
        query = query.where(NotificationRow.source_host_uuid == source_host_uuid)
    if generated_since is not None:
        query = query.where(NotificationRow.generated_time >= generated_since)
    return [_record(found) for found in rows_of(session, NotificationRow, query, page)]


def unfinished(session: Session, statuses: Collection[NotificationStatus]) -> list[Notification]:
    """Live notifications in one of the statuses, newest first. Spec: recovery §3.1."""
    query = _live().where(NotificationRow.status.in_(sorted(statuses)))
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

    Args:
        session: open transaction.
        uuid: of the notification.
        expected: statuses from which the change is allowed.
        status: the new one.
        message: stored with it; None leaves the old one.
    """
    values: dict[str, object] = {"status": status, "updated_at": now()}
    if message is not None:
        values["message"] = message
    statement = update(NotificationRow).where(
        NotificationRow.deleted == 0,
        NotificationRow.notification_uuid == uuid,
        NotificationRow.status.in_(sorted(set(expected) - {status})),
    )
    return affected(session, statement.values(values)) == 1


def _live() -> Select[Any]:
    return select(NotificationRow.__table__).where(NotificationRow.deleted == 0)


def _record(found: Any) -> Notification:
    values = found._asdict()
    values["deleted"] = bool(values["deleted"])
    values["type"] = NotificationType(values["type"])
    values["status"] = NotificationStatus(values["status"])
    # Upstream writes strings only; what another program wrote must not break a whole list.
    payload = json.loads(values["payload"] or "{}")
    values["payload"] = {key: str(value) for key, value in payload.items()}
    return Notification(**values)
