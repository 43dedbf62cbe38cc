"""Queries on the journal: what a takeover must know of each instance of a host's recovery."""

import dataclasses

import sqlalchemy as sa
from sqlalchemy.orm import Session

from masakari_ng.db.rows import JournalRow
from masakari_ng.domain import JournalEntry, VMove


def plan(session: Session, vmove: VMove) -> None:
    """Open the entry of a move that nothing has been done for.

    Raises:
        DuplicateKey: it has an entry, maybe from a run whose commit went unnoticed.
    """
    entry = JournalEntry(
        vmove_uuid=vmove.uuid,
        notification_uuid=vmove.notification_uuid,
        instance_uuid=vmove.instance_uuid,
    )
    session.execute(sa.insert(JournalRow).values(dataclasses.asdict(entry)))


def of_notification(session: Session, uuid: str) -> list[JournalEntry]:
    """Entries of one notification, in no particular order."""
    query = sa.select(JournalRow.__table__).where(JournalRow.notification_uuid == uuid)
    return [JournalEntry(**found._asdict()) for found in session.execute(query)]


def update(session: Session, vmove_uuid: str, **changes: object) -> None:
    """Change an entry; one that is gone stays so."""
    session.execute(
        sa.update(JournalRow).where(JournalRow.vmove_uuid == vmove_uuid).values(**changes)
    )


def aim(session: Session, notification_uuid: str, target: str | None) -> None:
    """Set the destination of all moves that have not been asked for.

    Args:
        session: open transaction; the caller commits.
        notification_uuid: whose moves.
        target: name of a host; None leaves the choice to Nova.
    """
    waiting = sa.and_(
        JournalRow.notification_uuid == notification_uuid, JournalRow.evacuate_sent.is_(False)
    )
    session.execute(sa.update(JournalRow).where(waiting).values(target=target))


def clear(session: Session, notification_uuid: str) -> None:
    """Drop the entries of a notification."""
    session.execute(sa.delete(JournalRow).where(JournalRow.notification_uuid == notification_uuid))


def forget(session: Session, vmove_uuid: str) -> None:
    """Drop one entry."""
    session.execute(sa.delete(JournalRow).where(JournalRow.vmove_uuid == vmove_uuid))
