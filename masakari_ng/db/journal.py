"""Queries on the journal: what a takeover must know of each instance of a host's recovery."""

import dataclasses
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from masakari_ng.db.rows import ClaimRow, JournalRow, VMoveRow
from masakari_ng.domain import JournalEntry, VMove

_SKEW = timedelta(minutes=1)


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


def note(
    session: Session, notification_uuid: str, instance_uuid: str = "", vm_state: str | None = None
) -> None:
    """Keep what is known of a recovery beyond its moves, once; its `vmove_uuid` is its own uuid.

    Aimed like a move that has not been asked for, it tells which reserved host was tried last.
    """
    entry = JournalEntry(
        vmove_uuid=notification_uuid,
        notification_uuid=notification_uuid,
        instance_uuid=instance_uuid,
        vm_state=vm_state,
    )
    known = [other.vmove_uuid for other in of_notification(session, notification_uuid)]
    if entry.vmove_uuid not in known:
        session.execute(sa.insert(JournalRow).values(dataclasses.asdict(entry)))


def of_notification(session: Session, uuid: str) -> list[JournalEntry]:
    """Entries of one notification, in no particular order."""
    query = sa.select(JournalRow.__table__).where(JournalRow.notification_uuid == uuid)
    return [JournalEntry(**found._asdict()) for found in session.execute(query)]


def sent_before(session: Session, vmove: VMove) -> bool:
    """Whether an evacuation of the instance was sent for an earlier move of the same attempt.

    An attempt is as old as its claim, whoever holds that by now; or a little older, since one is
    told by the clock of an engine and the other by that of the database.
    """
    uuid = vmove.notification_uuid
    claimed_at = session.scalar(
        sa.select(ClaimRow.claimed_at).where(ClaimRow.notification_uuid == uuid)
    )
    if claimed_at is None:
        return False
    earlier = sa.select(VMoveRow.id).where(
        VMoveRow.deleted == 0,
        VMoveRow.notification_uuid == uuid,
        VMoveRow.instance_uuid == vmove.instance_uuid,
        VMoveRow.uuid != vmove.uuid,
        VMoveRow.start_time >= claimed_at - _SKEW,
    )
    return session.scalars(earlier).first() is not None


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
