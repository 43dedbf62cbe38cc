"""Queries of the doctor, on several tables: what should not be there. They change nothing."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from masakari_ng.db.rows import ClaimRow, JournalRow, NotificationRow, VMoveRow
from masakari_ng.domain import NotificationStatus

_NOT_RECOVERED = (NotificationStatus.ERROR, NotificationStatus.FAILED)
_STILL_LOCKED = "%is still locked%"
"""What a recovery that could not unlock has put into the message of the vmove."""


def seconds_ahead(session: Session) -> float:
    """By how much the clock of the database is ahead of ours, the way there left aside."""
    mariadb = session.get_bind().dialect.name != "sqlite"
    theirs = sa.text("SELECT UTC_TIMESTAMP(6)" if mariadb else "SELECT CURRENT_TIMESTAMP")
    before = datetime.now(UTC)
    found = session.scalar(theirs)
    moment = found if isinstance(found, datetime) else datetime.fromisoformat(str(found))
    middle = before + (datetime.now(UTC) - before) / 2
    return (moment.replace(tzinfo=UTC) - middle).total_seconds()


def has_workflows(session: Session) -> bool:
    """Whether taskflow's tables are there."""
    return sa.inspect(session.connection()).has_table("logbooks")


def locks_left(session: Session) -> list[str]:
    """Uuids of instances that a recovery has locked, on which no engine works any more."""
    claimed = sa.exists().where(ClaimRow.notification_uuid == JournalRow.notification_uuid)
    query = sa.select(JournalRow.instance_uuid).where(JournalRow.locked.is_(True), ~claimed)
    return list(session.scalars(query))


def moved_in_vain(session: Session, since: datetime) -> list[str]:
    """Uuids of instances of failed recoveries, or whose unlocking failed, the latest first.

    Args:
        session: open transaction.
        since: latest change of the notification at the earliest, naive UTC.
    """
    row, of = VMoveRow, NotificationRow
    query = sa.select(row.instance_uuid).join(of, of.notification_uuid == row.notification_uuid)
    query = query.where(row.deleted == 0, of.deleted == 0, of.updated_at >= since)
    troubled = sa.or_(of.status.in_(_NOT_RECOVERED), row.message.like(_STILL_LOCKED))
    return list(session.scalars(query.where(troubled).order_by(row.id.desc())))
