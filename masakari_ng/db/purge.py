"""Removal of old rows for good: what `db purge` does. Spec: data-model §8."""

import functools
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_db.exception import DBReferenceError
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.rows import (
    ClaimRow,
    HostRow,
    IntakeRow,
    JournalRow,
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
_PARENTS = 100  # Each may have many rows.


_HOST, _NOTIFICATION = HostRow.uuid, NotificationRow.notification_uuid
_LOGBOOK: sa.ColumnElement[str] = sa.table("logbooks", sa.column("uuid")).c.uuid
_OWN: tuple[tuple[Any, Any], ...] = (
    (IntakeRow.source_host_uuid, _HOST),
    (ClaimRow.notification_uuid, _NOTIFICATION),
    (JournalRow.notification_uuid, _NOTIFICATION),
)
"""Columns of masakari-ng's own tables with the column that they refer to."""


def purge(
    database: Database,
    *,
    days: int,
    limit: int | None,
    history: bool = False,
    workflows: Database | None = None,
) -> int:
    """Remove rows that were deleted, and notifications that ended, some time ago.

    Rows of masakari-ng's own tables go with the host or notification that they belong to. Each
    transaction removes a few rows of one table; what is done stays done.

    Args:
        database: where the rows are.
        days: age that a row must have.
        limit: most rows to remove, over all of upstream's tables; None for no limit.
        history: remove what upstream leaves for ever, too: vmoves, and flows with their tasks, of
            notifications that are gone, whoever removed these.
        workflows: where the flows are; None where that is not known.

    Returns:
        How many rows were removed.

    Raises:
        PurgeRefused: a row is still referred to.
    """
    before = now() - timedelta(days=days)
    total = 0
    existing = database.read(_existing)
    for row in _TABLES:
        if row.__tablename__ not in existing:
            continue
        if limit is not None and total >= limit:
            break
        table = row.__tablename__
        log.info("Purging deleted rows older than %d day(s) from table %s", days, table)
        removed = _purge_table(database, row, before, None if limit is None else limit - total)
        log.info("Deleted %d row(s) from table %s", removed, table)
        total += removed
    orphans = [(database, *pair) for pair in _OWN]
    if history:
        orphans.append((database, VMoveRow.notification_uuid, _NOTIFICATION))
    if history and workflows is not None:
        orphans.append((workflows, _LOGBOOK, _NOTIFICATION))
    total += sum(_purge_orphans(database, *orphan) for orphan in orphans)
    log.info("Total deleted rows are %d", total)
    return total


def _existing(session: Session) -> set[str]:
    return set(sa.inspect(session.connection()).get_table_names())


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


def _purge_orphans(database: Database, holder: Database, column: Any, parent: Any) -> int:
    """Remove rows of the table of `column`, which is in `holder`, whose parent row is gone."""
    table = column.table.name
    if table not in holder.read(_existing):
        return 0
    removed, last = 0, ""
    while uuids := holder.read(functools.partial(_uuids, column=column, after=last)):
        last = uuids[-1]
        # Not `read`: a replica that lags behind would not know a new parent yet.
        known = database.write(functools.partial(_known, parent=parent, uuids=uuids))
        if gone := set(uuids) - known:
            doomed = sa.delete(column.table).where(column.in_(gone))
            removed += holder.write(functools.partial(affected, statement=doomed))
    if removed:
        log.info("Deleted %d row(s) of what is gone from table %s", removed, table)
    return removed


def _uuids(session: Session, column: Any, after: str) -> Sequence[str]:
    query = sa.select(column).distinct().where(column > after).order_by(column).limit(_PARENTS)
    return session.scalars(query).all()


def _known(session: Session, parent: Any, uuids: Sequence[str]) -> set[str]:
    return set(session.scalars(sa.select(parent).where(parent.in_(uuids))))
