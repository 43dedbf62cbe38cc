"""The columns of every table, and how rows of upstream's are read and written.

Spec: data-model §2, §6
"""

import functools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar, cast

import sqlalchemy as sa
from sqlalchemy import String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from masakari_ng import errors
from masakari_ng.db.session import translated
from masakari_ng.domain import (
    NotificationStatus,
    NotificationType,
    RecoveryMethod,
    VMoveStatus,
    VMoveType,
)


def _enum(members: type[StrEnum], *, native: bool) -> sa.Enum:
    return sa.Enum(members, native_enum=native, values_callable=list)


class _Foreign(sa.TypeDecorator[str]):
    """Text that Nova made, fitted to a column of three-byte UTF-8; its length is in characters.

    An instance may be named with an emoji; that must not end the recovery of its host.
    """

    impl = String
    cache_ok = True
    _UNKNOWN = re.compile("[\\U00010000-\\U0010ffff\\ud800-\\udfff]")

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        length: int = self.impl_instance.length  # type: ignore[attr-defined]  # it is a String
        return value and self._UNKNOWN.sub("\N{REPLACEMENT CHARACTER}", value)[:length]


_LONGEST_TEXT = 65_535 // 3


class Row(DeclarativeBase):
    """Ancestor of all; an enum may be compared with any text, whether it is text there or not."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {StrEnum: _enum(StrEnum, native=False)}


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
    recovery_method: Mapped[RecoveryMethod] = mapped_column(_enum(RecoveryMethod, native=True))
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
    type: Mapped[NotificationType]
    payload: Mapped[str | None] = mapped_column(Text)
    status: Mapped[NotificationStatus] = mapped_column(_enum(NotificationStatus, native=True))
    failover_segment_uuid: Mapped[str | None] = mapped_column(String(36))
    message: Mapped[str | None] = mapped_column(_Foreign(_LONGEST_TEXT))


class VMoveRow(StoredRow):
    """The move of one instance."""

    __tablename__ = "vmoves"

    uuid: Mapped[str] = mapped_column(String(36))
    notification_uuid: Mapped[str] = mapped_column(String(36))
    instance_uuid: Mapped[str] = mapped_column(String(36))
    instance_name: Mapped[str] = mapped_column(_Foreign(255))
    source_host: Mapped[str | None] = mapped_column(String(255))
    dest_host: Mapped[str | None] = mapped_column(String(255))
    start_time: Mapped[datetime | None]
    end_time: Mapped[datetime | None]
    type: Mapped[VMoveType | None]
    status: Mapped[VMoveStatus | None]
    message: Mapped[str | None] = mapped_column(_Foreign(_LONGEST_TEXT))


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
    target: Mapped[str | None] = mapped_column(String(255))


def now() -> datetime:
    """The present as stored: naive UTC, whole seconds."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def shown(row: type[StoredRow]) -> list[sa.ColumnElement[Any]]:
    """The columns of a live row's record, which is not marked as deleted by default."""
    return [column for column in row.__table__.columns if column.name != "deleted"]


def live(row: type[StoredRow], **wanted: object) -> sa.Select[Any]:
    """Live rows whose columns are equal to what is wanted; None stands for anything."""
    return narrowed(_live(row), row, **wanted)


def narrowed(query: sa.Select[Any], row: type[StoredRow], **wanted: object) -> sa.Select[Any]:
    """The query with the conditions that `live` describes."""
    given = {name: value for name, value in wanted.items() if value is not None}
    return query.where(*(getattr(row, name) == value for name, value in given.items()))


@functools.cache
def _live(row: type[StoredRow]) -> sa.Select[Any]:
    return sa.select(*shown(row)).where(row.deleted == 0)


def one(session: Session, query: sa.Select[Any], missing: errors.MasakariError) -> Any:
    """The first row of a query, or `missing` is raised."""
    found = session.execute(query).first()
    if found is None:
        raise missing
    return found


@contextmanager
def unique(taken: errors.Conflict) -> Iterator[None]:
    """Raise `taken` if a statement finds a unique key taken."""
    try:
        with translated():
            yield
    except errors.DuplicateKey as error:
        raise taken from error


def add(session: Session, row: type[StoredRow], **values: object) -> int:
    """Insert a live row; gives its id."""
    stored = {"created_at": now(), "deleted": 0, **values}
    done = cast("sa.CursorResult[Any]", session.execute(sa.insert(row).values(stored)))
    return int((done.inserted_primary_key or (0,))[0])


def change(
    session: Session, row: type[StoredRow], found: Any, changes: Mapping[str, object]
) -> None:
    """Write the columns whose value is not that of `found`, the row as read in this transaction.

    Where all are as wanted, no statement is sent.
    """
    real = {name: value for name, value in changes.items() if getattr(found, name) != value}
    if real:
        statement = sa.update(row).where(row.id == found.id, row.deleted == 0)
        affected(session, statement.values(updated_at=now(), **real))


def bury(session: Session, row: type[StoredRow], condition: sa.ColumnElement[bool]) -> int:
    """Delete softly what is live and meets the condition; gives the number of rows."""
    statement = sa.update(row).where(row.deleted == 0, condition)
    return affected(session, statement.values(deleted=row.id, deleted_at=now()))


def affected(session: Session, statement: sa.UpdateBase) -> int:
    """Execute a change; gives the number of rows that met its condition."""
    # Without the option SQLAlchemy may read the rows first, to refresh what the session knows.
    statement = statement.execution_options(synchronize_session=False)
    return cast("sa.CursorResult[Any]", session.execute(statement)).rowcount
