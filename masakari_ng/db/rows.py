"""The columns of every table, and how rows of upstream's are written. Spec: data-model §2, §6.

Enum columns are text here: a filter may compare them with any text.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, String, Text, UpdateBase, insert, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from masakari_ng.db.session import translated
from masakari_ng.domain import NotificationStatus, RecoveryMethod

ENUM_ORDER = "enum_order"
"""Key of a column's `info`: values in the order of the database's enum, by which it sorts."""


class Row(DeclarativeBase):
    """Ancestor of all."""


class StoredRow(Row):
    """What upstream's tables have in common.

    Attributes:
        deleted: 0 for a live row, its own `id` for a deleted one, so that names become free.
    """

    __abstract__ = True

    created_at: Mapped[datetime | None]
    updated_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    deleted: Mapped[int | None]
    id: Mapped[int] = mapped_column(primary_key=True)


class SegmentRow(StoredRow):
    """A failover segment."""

    __tablename__ = "failover_segments"

    uuid: Mapped[str] = mapped_column(String(36))
    name: Mapped[str] = mapped_column(String(255))
    service_type: Mapped[str] = mapped_column(String(255))
    description: Mapped[str | None] = mapped_column(Text)
    recovery_method: Mapped[str] = mapped_column(info={ENUM_ORDER: tuple(RecoveryMethod)})
    enabled: Mapped[bool | None]


class HostRow(StoredRow):
    """A host; `failover_segment_id` is the uuid of its segment, not the id."""

    __tablename__ = "hosts"

    uuid: Mapped[str] = mapped_column(String(36))
    name: Mapped[str] = mapped_column(String(255))
    reserved: Mapped[bool | None]
    type: Mapped[str] = mapped_column(String(255))
    control_attributes: Mapped[str] = mapped_column(Text)
    failover_segment_id: Mapped[str] = mapped_column(String(36))
    on_maintenance: Mapped[bool | None]


class NotificationRow(StoredRow):
    """A report; `payload` is the JSON text of one object."""

    __tablename__ = "notifications"

    notification_uuid: Mapped[str] = mapped_column(String(36))
    generated_time: Mapped[datetime]
    source_host_uuid: Mapped[str] = mapped_column(String(36))
    type: Mapped[str] = mapped_column(String(36))
    payload: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(info={ENUM_ORDER: tuple(NotificationStatus)})
    failover_segment_uuid: Mapped[str | None] = mapped_column(String(36))
    message: Mapped[str | None] = mapped_column(Text)


class VMoveRow(StoredRow):
    """The move of one instance."""

    __tablename__ = "vmoves"

    uuid: Mapped[str] = mapped_column(String(36))
    notification_uuid: Mapped[str] = mapped_column(String(36))
    instance_uuid: Mapped[str] = mapped_column(String(36))
    instance_name: Mapped[str] = mapped_column(String(255))
    source_host: Mapped[str | None] = mapped_column(String(255))
    dest_host: Mapped[str | None] = mapped_column(String(255))
    start_time: Mapped[datetime | None]
    end_time: Mapped[datetime | None]
    type: Mapped[str | None] = mapped_column(String(36))
    status: Mapped[str | None] = mapped_column(String(255))
    message: Mapped[str | None] = mapped_column(Text)


class IntakeRow(Row):
    """Written by each report first, so that reports of one host and type queue up."""

    __tablename__ = "masakari_ng_intake"

    source_host_uuid: Mapped[str] = mapped_column(String(36), primary_key=True)
    type: Mapped[str] = mapped_column(String(36), primary_key=True)
    reported_at: Mapped[datetime | None]


class ClaimRow(Row):
    """The right of one engine to work on one notification.

    Attributes:
        working_host: the source host while working, NULL while waiting; it is unique, so one host
            has one working claim over all engines.
    """

    __tablename__ = "masakari_ng_claims"

    notification_uuid: Mapped[str] = mapped_column(String(36), primary_key=True)
    source_host_uuid: Mapped[str] = mapped_column(String(36))
    working_host: Mapped[str | None] = mapped_column(String(36))
    engine: Mapped[str] = mapped_column(String(255))
    version: Mapped[int]
    claimed_at: Mapped[datetime]
    heartbeat: Mapped[datetime]


class JournalRow(Row):
    """What a takeover must know of one instance."""

    __tablename__ = "masakari_ng_journal"

    vmove_uuid: Mapped[str] = mapped_column(String(36), primary_key=True)
    notification_uuid: Mapped[str] = mapped_column(String(36))
    instance_uuid: Mapped[str] = mapped_column(String(36))
    vm_state: Mapped[str | None] = mapped_column(String(64))
    compare_state: Mapped[str | None] = mapped_column(String(64))
    stop_after: Mapped[bool]
    error_after: Mapped[bool]
    locked: Mapped[bool]
    evacuate_sent: Mapped[bool]


def now() -> datetime:
    """The present as stored: naive UTC, whole seconds."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def add(session: Session, row: type[StoredRow], values: Mapping[str, Any]) -> None:
    """Insert a live row.

    Raises:
        DuplicateKey: a unique key is taken.
    """
    with translated():
        session.execute(insert(row).values(created_at=now(), deleted=0, **values))


def change(
    session: Session, row: type[StoredRow], found: Any, changes: Mapping[str, object]
) -> None:
    """Write the columns that really change; without any, no statement is sent.

    Args:
        session: open transaction.
        row: table.
        found: its row as read in this transaction.
        changes: wanted values by column name.

    Raises:
        DuplicateKey: a unique key is taken.
    """
    real = {name: value for name, value in changes.items() if getattr(found, name) != value}
    if real:
        statement = update(row).where(row.id == found.id, row.deleted == 0)
        with translated():
            session.execute(statement.values(updated_at=now(), **real))


def bury(session: Session, row: type[StoredRow], condition: ColumnElement[bool]) -> int:
    """Delete softly what is live and meets the condition; gives the number of rows."""
    statement = update(row).where(row.deleted == 0, condition)
    return affected(session, statement.values(deleted=row.id, deleted_at=now()))


def affected(session: Session, statement: UpdateBase) -> int:
    """Execute a change; gives the number of rows that met its condition."""
    return cast("CursorResult[Any]", session.execute(statement)).rowcount
