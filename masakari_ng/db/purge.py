"""Removal of old rows for good: what `db purge` does. Spec: data-model §8."""

import functools
import logging
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_db.exception import DBReferenceError
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.rows import (
    HostRow,
    NotificationRow,
    SegmentRow,
    StoredRow,
    VMoveRow,
    affected,
    now,
)
from masakari_ng.db.session import Database
from masakari_ng.domain import NotificationStatus

log = logging.getLogger(__name__)

_TABLES: tuple[type[StoredRow], ...] = (HostRow, VMoveRow, NotificationRow, SegmentRow)
"""Children before parents."""

_ENDED = (
    NotificationStatus.FAILED,
    NotificationStatus.IGNORED,
    NotificationStatus.FINISHED,
)
"""Statuses of notifications that go, in this order, whether deleted or not."""

_BATCH = 1000


def purge(database: Database, *, days: int, limit: int | None) -> int:
    """Remove rows that were deleted, and notifications that ended, some time ago.

    Each transaction removes a few rows of one table; what is done stays done.

    Args:
        database: where the rows are.
        days: age that a row must have.
        limit: most rows to remove, over all tables; None for no limit.

    Returns:
        How many rows were removed.

    Raises:
        PurgeRefused: a row is still referred to.
    """
    before = now() - timedelta(days=days)
    total = 0
    for row in database.read(_existing):
        if limit is not None and total >= limit:
            break
        table = row.__tablename__
        log.info("Purging deleted rows older than %d day(s) from table %s", days, table)
        removed = _purge_table(database, row, before, None if limit is None else limit - total)
        log.info("Deleted %d row(s) from table %s", removed, table)
        total += removed
    log.info("Total deleted rows are %d", total)
    return total


def _existing(session: Session) -> list[type[StoredRow]]:
    names = sa.inspect(session.connection()).get_table_names()
    return [row for row in _TABLES if row.__tablename__ in names]


def _purge_table(
    database: Database, row: type[StoredRow], before: datetime, limit: int | None
) -> int:
    # MariaDB takes no LIMIT in a subquery of IN, and none of the tables has an index on age.
    ids = database.read(lambda session: session.scalars(_old(row, before).limit(limit)).all())
    removed = 0
    for start in range(0, len(ids), _BATCH):
        doomed = sa.delete(row).where(row.id.in_(ids[start : start + _BATCH]))
        try:
            removed += database.write(functools.partial(affected, statement=doomed))
        except DBReferenceError as error:
            raise errors.PurgeRefused(
                f"Table {row.__tablename__} has old rows that {error.table} still refers to"
            ) from error
    return removed


def _old(row: type[StoredRow], before: datetime) -> sa.Select[Any]:
    if row is not NotificationRow:
        return sa.select(row.id).where(row.deleted_at < before).order_by(row.deleted_at, row.id)
    order = sa.case({status: number for number, status in enumerate(_ENDED)}, value=row.status)
    ended = sa.select(row.id).where(row.updated_at < before, row.status.in_(_ENDED))
    return ended.order_by(order, row.id)
