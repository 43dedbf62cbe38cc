"""Queries for metrics, on several tables: how much there is to do. They change nothing."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from masakari_ng.db.rows import NotificationRow, SegmentRow, now
from masakari_ng.domain import UNFINISHED, NotificationStatus, NotificationType


@dataclass(frozen=True, slots=True)
class Heap:
    """Notifications of one type, status and segment.

    Attributes:
        oldest: seconds since the first of them was reported.
    """

    type: NotificationType
    status: NotificationStatus
    segment: str
    count: int
    oldest: float


def unfinished(session: Session) -> list[Heap]:
    """Live notifications that are not finished; an index of ours leads to them."""
    row = NotificationRow
    kinds = (row.type, row.status, row.failover_segment_uuid)
    query = sa.select(*kinds, sa.func.count(), sa.func.min(row.created_at))
    query = query.where(row.deleted == 0, row.status.in_(sorted(UNFINISHED))).group_by(*kinds)
    return [
        Heap(
            NotificationType(kind),
            NotificationStatus(status),
            segment or "",
            count,
            (now() - first).total_seconds() if first else 0.0,
        )
        for kind, status, segment, count, first in session.execute(query)
    ]


def segments(session: Session) -> list[tuple[str, str]]:
    """Uuid and name of each live segment."""
    query = sa.select(SegmentRow.uuid, SegmentRow.name).where(SegmentRow.deleted == 0)
    return [(uuid, name) for uuid, name in session.execute(query)]
